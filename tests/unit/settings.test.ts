import { afterAll, describe, expect, it } from 'bun:test';
import { generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { inspect } from 'node:util';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { memoryLimitBytes } from '../../src/gateway/settings/memory.ts';
import { loadSettings, parseSettings, type Settings } from '../../src/gateway/settings/settings.ts';
import { clientKeyPair, SIGNING_ALGORITHMS } from '../support/client-keys.ts';
import { NAMES_PREFIX, settingNames } from '../support/setting-names.ts';

const REQUIRED = {
  UPSTREAM_URL: 'https://upstream.test/base',
  IDP_URL: 'https://idp.test',
  IDP_CLIENT_ID: 'studio',
  IDP_REDIRECT_URI: 'https://studio.test/callback',
  ALLOWED_ORIGINS: 'https://studio.test',
};
/** Follows the problems when a required setting is missing. */
const ALL_NAMES = NAMES_PREFIX + settingNames().join(', ');

function settingsOf(environment: Environment): Settings {
  const outcome = parseSettings({ ...REQUIRED, ...environment });
  if (!outcome.ok) throw new Error(outcome.problems.join('\n'));
  return outcome.settings;
}

/** What is wrong with an environment; nothing when it is good. */
function problemsOf(environment: Environment): readonly string[] {
  const outcome = parseSettings({ ...REQUIRED, ...environment });
  return outcome.ok ? [] : outcome.problems;
}

function warningsOf(environment: Environment): readonly string[] {
  return parseSettings({ ...REQUIRED, NODE_ENV: 'production', ...environment }).warnings;
}

const CLIENT_KEY = clientKeyPair('ES256');
const PRIVATE_JWK = CLIENT_KEY.privateJwk;
const KEYS = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64url')).join(', ');
const REDIS = 'rediss://:secret@cache.test:6380/1';
const COLLECTOR = 'http://127.0.0.1:4318';
const SECRET = { kind: 'secret', secret: 'a secret' };

type Read = (settings: Settings) => unknown;
type Optional = [name: string, read: Read, fallback: unknown, given: string, taken: unknown];
const OPTIONAL: readonly Optional[] = [
  ['PORT', ({ port }) => port, 4175, '8080', 8080],
  ['HOST', ({ host }) => host, '0.0.0.0', '127.0.0.1', '127.0.0.1'],
  ['SERVICE_NAME', ({ serviceName }) => serviceName, 'music-gateway', 'studio gateway', 'studio gateway'],
  ['NODE_ENV', ({ production }) => production, false, 'production', true],
  ['UPSTREAM_SIGN_IN_FIELD', (all) => all.upstreamSignInField, 'access_token', 'token', 'token'],
  ['MAX_IN_FLIGHT_REQUESTS', ({ maxInFlightRequests }) => maxInFlightRequests, 4000, '60000', 60_000],
  ['MAX_IN_FLIGHT_PER_SESSION', ({ maxInFlightPerSession }) => maxInFlightPerSession, 100, '0', 0],
  ['MAX_GENERATIONS_PER_SESSION', ({ maxGenerationsPerSession }) => maxGenerationsPerSession, 10, '0', 0],
  ['RELAY_SLICE_BYTES', ({ relaySliceBytes }) => relaySliceBytes, 262_144, '0', 0],
  ['METRICS_PORT', ({ metricsPort }) => metricsPort, undefined, '9464', 9464],
  ['METRICS_HOST', ({ metricsHost }) => metricsHost, '127.0.0.1', '0.0.0.0', '0.0.0.0'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', ({ traceShare }) => traceShare, undefined, COLLECTOR, 1],
  ['LOG_LEVEL', ({ logLevel }) => logLevel, 'info', 'debug', 'debug'],
  ['TIMEOUT_SIGN_IN_MS', ({ timeouts }) => timeouts.signInMs, 20_000, '1', 1],
  ['TIMEOUT_READ_MS', ({ timeouts }) => timeouts.readMs, 15_000, '2', 2],
  ['TIMEOUT_LOGOUT_MS', ({ timeouts }) => timeouts.logoutMs, 10_000, '3', 3],
  ['TIMEOUT_STREAM_MS', ({ timeouts }) => timeouts.streamMs, 280_000, '4', 4],
  ['REFRESH_REPLAY_SECONDS', ({ refreshReplaySeconds }) => refreshReplaySeconds, 60, '0', 0],
  ['REFRESH_OUTAGE', ({ refreshOutage }) => refreshOutage, 'sign-out', 'keep', 'keep'],
  ['REDIS_URL', ({ redisUrl }) => redisUrl, undefined, REDIS, REDIS],
  ['IDP_CLIENT_SECRET', ({ identityProvider }) => identityProvider.credential, undefined, 'a secret', SECRET],
  [
    'IDP_CLIENT_KEY',
    ({ identityProvider }) => identityProvider.credential?.kind,
    undefined,
    PRIVATE_JWK,
    'key',
  ],
  ['SIGN_OUT_REVOKES', ({ signOutRevokes }) => signOutRevokes, false, 'true', true],
  ['COOKIE_KEYS', ({ cookies }) => cookies.keys, [], KEYS, [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]],
  ['COOKIE_SAME_SITE', ({ cookies }) => cookies.sameSite, 'lax', 'strict', 'strict'],
  ['COOKIE_SECURE', ({ cookies }) => cookies.secure, false, 'true', true],
  ['COOKIE_KEYS_ACCEPT_PLAIN', ({ cookies }) => cookies.acceptPlain, false, 'true', true],
  ['FORWARD_CLIENT_ADDRESS', (all) => all.isTrustedProxy?.('127.0.0.1'), undefined, 'true', false],
];

async function clientKeyOf(environment: Environment) {
  const { credential } = settingsOf(environment).identityProvider;
  return credential?.kind === 'key' ? await credential.key.imported() : undefined;
}

const upstreamUrl: Read = (settings) => settings.upstreamUrl;
const tokenUrl: Read = ({ identityProvider }) => identityProvider.tokenUrl;
const issuer: Read = ({ identityProvider }) => identityProvider.issuer;
const redirectUris: Read = ({ identityProvider }) => identityProvider.redirectUris;
const redisUrl: Read = (settings) => settings.redisUrl;
const origins: Read = ({ allowedOrigins }) => [...allowedOrigins];

/** What a value becomes; without an expectation it is kept letter by letter. */
const TAKEN: readonly [name: string, read: Read, value: string, expected?: unknown][] = [
  ['PORT', ({ port }) => port, '0', 0],
  ['PORT', ({ port }) => port, '65535', 65_535],
  ['PORT', ({ port }) => port, '00080', 80],
  ...['http://host', 'https://host.test:8443', 'https://host.test/'].flatMap(address),
  ...['https://host.test/base', 'https://host.test/two/parts///', 'http://[::1]:8080/'].flatMap(address),
  ['IDP_URL', issuer, 'https://idp.test/'],
  ['REDIS_URL', redisUrl, 'valkey://cache.test'],
  ['REDIS_URL', redisUrl, 'redis+unix:///run/redis.sock'],
  ['REDIS_URL', redisUrl, 'redis+unix://user:secret@localhost/run/redis.sock'],
  ['IDP_URL', issuer, 'https://IDP.test:443/tenant/'],
  ['IDP_TOKEN_URL', tokenUrl, 'https://idp.test'],
  ['IDP_TOKEN_URL', tokenUrl, 'http://127.0.0.1:8080/a//token/'],
  ['IDP_TOKEN_URL', tokenUrl, 'https://idp.test/v2/token?tenant=a%2Fb'],
  ...['https://studio.test', 'HTTPS://Studio.Test:443/Callback/../x?a=b%20c'].map(single),
  ...['studio.app:/callback', 'https://elsewhere.test/callback', 'https://a.test/?x=1,2,http'].map(single),
  ...['https://a.test/b,c', 'https://a.test/b,', 'studio.app:/callback,x'].map(single),
  ['ALLOWED_ORIGINS', origins, 'http://[::1]:5173', ['http://[::1]:5173']],
  ['ALLOWED_ORIGINS', origins, 'https://a.test,http://b.test:84', ['https://a.test', 'http://b.test:84']],
  ['ALLOWED_ORIGINS', origins, ' https://a.test , https://b.test ', ['https://a.test', 'https://b.test']],
  ['ALLOWED_ORIGINS', origins, 'https://a.test,,https://a.test,', ['https://a.test']],
  ['ALLOWED_ORIGINS', origins, 'https://xn--caf-dma.test', ['https://xn--caf-dma.test']],
];

function single(value: string): [string, Read, string, string[]] {
  return ['IDP_REDIRECT_URI', redirectUris, value, [value]];
}

/** Both base addresses lose their trailing slashes. */
function address(value: string): [string, Read, string, string][] {
  const base = value.replace(/\/+$/, '');
  return [
    ['UPSTREAM_URL', upstreamUrl, value, base],
    ['IDP_URL', tokenUrl, value, `${base}/oauth/token`],
  ];
}

const TIMEOUTS = ['TIMEOUT_SIGN_IN_MS', 'TIMEOUT_READ_MS', 'TIMEOUT_LOGOUT_MS', 'TIMEOUT_STREAM_MS'];
const FLAGS = ['COOKIE_KEYS_ACCEPT_PLAIN', 'COOKIE_SECURE', 'SIGN_OUT_REVOKES', 'FORWARD_CLIENT_ADDRESS'];
const URLS = ['UPSTREAM_URL', 'IDP_URL', 'OTEL_EXPORTER_OTLP_ENDPOINT'];
const NO_CREDENTIALS = ' must not contain credentials';
const NO_QUERY = ' must not contain a query or a fragment';
const NO_FRAGMENT = ' must not contain a fragment';
const NOT_ABSOLUTE = ' must be an absolute URI, not "VALUE"';
const NOT_REDIS =
  ' must be an address like redis://127.0.0.1:6379, or redis+unix://:password@localhost/run/redis.sock for a socket';
const NO_ORIGIN = ': "VALUE" is not an origin like https://studio.example';
const NO_NETWORK = ': "VALUE" is not an address or a network like 10.0.0.0/8';
const ADDRESS = ' must be an http or https address, not "VALUE"';

function integer(least: number, most: number): string {
  return ` must be a whole number from ${least} to ${most}, not "VALUE"`;
}

/** Settings, how the problem with them goes on, and values that have it, with ` | ` between them. */
const REFUSED: readonly [names: readonly string[], problem: string, values: string][] = [
  [['PORT'], integer(0, 65_535), '65536 | -1 | +80 | 80.0 | 8e1 | 0x50 | 80 81 | http | ٨٠ | NaN | Infinity'],
  [['PORT'], integer(0, 65_535), '1'.repeat(400)],
  [TIMEOUTS, integer(1, 2_147_483_647), '0 | 2147483648 | -5 | 1.5 | 20s | 20_000 | 1e3'],
  [['MAX_IN_FLIGHT_REQUESTS'], integer(1, 60_000), '0 | 60001 | 1.5 | many'],
  [['MAX_IN_FLIGHT_PER_SESSION'], integer(0, 60_000), '-1 | 60001 | 1.5 | many'],
  [['MAX_GENERATIONS_PER_SESSION'], integer(0, 60_000), '60001 | 1.5 | many'],
  [['RELAY_SLICE_BYTES'], integer(0, 8_388_608), '8388609 | 1.5 | many'],
  [URLS, ADDRESS, 'host.test | /base | ftp://a.test | ws://a.test | file:///etc | http:// | http://a b | x'],
  [URLS, NO_CREDENTIALS, 'https://user:secret@host.test | https://user@host.test | ftp://u:secret@host.test'],
  [URLS, NO_CREDENTIALS, 'https://:secret@a.test/base | https://u:secret@no host | htp://u:s@a.test:port'],
  [URLS, NO_QUERY, 'https://a.test?a=b | https://a.test/base? | https://a.test/#a | https://a.test#'],
  [['IDP_REDIRECT_URI'], NOT_ABSOLUTE, '/callback | studio.test/callback | https:// | ?x | ,'],
  [['IDP_REDIRECT_URI'], NO_FRAGMENT, 'https://studio.test/callback#a | https://studio.test/#'],
  [['IDP_TOKEN_URL'], ADDRESS, 'idp.test/token | /oauth/token | ftp://idp.test/token'],
  [['IDP_TOKEN_URL'], ADDRESS.replace('VALUE', 'ftp://idp.test/token'), 'ftp://idp.test/token?key=secret'],
  [['IDP_TOKEN_URL'], NO_CREDENTIALS, 'https://user:secret@idp.test/token'],
  [['IDP_TOKEN_URL'], NO_FRAGMENT, 'https://idp.test/token#secret | https://idp.test/token?a#'],
  [['ALLOWED_ORIGINS'], NO_ORIGIN, '* | null | a.test | //a.test | ftp://a.test | file:// | https://'],
  [['ALLOWED_ORIGINS'], NO_ORIGIN, 'chrome-extension://a | https://*.a.test | http://*'],
  [['ALLOWED_ORIGINS'], ' must name at least one origin', ', | ,,'],
  [['REDIS_URL'], NOT_REDIS, 'http://:secret@cache.test | http://cache.test | cache.test:6379 | redis'],
  [
    ['REDIS_URL'],
    NOT_REDIS,
    'redis://:secret@a.test/b | redis+unix://:secret@/run/redis.sock | redis+unix://run',
  ],
  [FLAGS, ' must be true or false, not "VALUE"', 'yes | 1 | TRUE'],
  [['COOKIE_SAME_SITE'], ' must be lax or strict, not "VALUE"', 'none | Strict | LAX | true'],
  [['REFRESH_OUTAGE'], ' must be sign-out or keep, not "VALUE"', 'Keep | true'],
  [
    ['TRUSTED_PROXIES'],
    NO_NETWORK,
    '10.0.0.0/33 | ::/129 | 10.0.0.0/ | 10.0.0/8 | 10.0.0.1-9 | 010.0.0.1 | *',
  ],
  [
    ['TRUSTED_PROXIES'],
    NO_NETWORK,
    'localhost | 10.0.0.1:80 | [::1] | fe80::1%eth0 | ::ffff:10.0.0.0/104 | /8',
  ],
  [['TRUSTED_PROXIES'], NO_NETWORK, '10.0.0.0/8/8 | 10.0.0.0/-8 | 10.0.0.0/+8 | 10.0.0.0/8.0 | 10.0.0.1 ::1'],
  [['TRUSTED_PROXIES'], ': "VALUE" would trust every client', '0.0.0.0/0 | 10.0.0.1/0 | ::/0'],
  [['LOG_LEVEL'], ' must be fatal, error, warn, info, debug, trace, or silent, not "VALUE"', 'INFO | 30'],
  [
    ['OTEL_TRACES_SAMPLER_ARG'],
    ' must be a number from 0 to 1, not "VALUE"',
    '-0.1 | 1.1 | 10% | half | 0,1',
  ],
  [['METRICS_PORT'], ' must not be PORT (4175), which is public', '4175'],
];
const REFUSALS = REFUSED.flatMap(([names, problem, values]) =>
  names.flatMap((name) => values.split(' | ').map((value) => [name, value, name + problem] as const)),
);

describe('parseSettings()', () => {
  it('reads the required settings as they are given', () => {
    expect(settingsOf({})).toMatchObject({
      upstreamUrl: 'https://upstream.test/base',
      identityProvider: {
        issuer: 'https://idp.test',
        tokenUrl: 'https://idp.test/oauth/token',
        credential: undefined,
        clientId: 'studio',
        redirectUris: ['https://studio.test/callback'],
      },
      allowedOrigins: new Set(['https://studio.test']),
    });
  });

  it.each([...OPTIONAL])('reads %s, and has a default for it', (name, read, fallback, given, taken) => {
    const become = (value: string | undefined) => read(settingsOf({ [name]: value }));
    for (const value of [undefined, '', ' \t ']) expect(become(value)).toEqual(fallback);
    for (const value of [given, ` ${given}\t`]) expect(become(value)).toEqual(taken);
    expect(warningsOf({ [name]: given })).toEqual([]);
  });

  it('ignores blanks around a required value', () => {
    const blanks = Object.entries(REQUIRED).map(([name, value]) => [name, `  ${value}\t`]);
    expect(settingsOf(Object.fromEntries(blanks))).toEqual(settingsOf({}));
  });

  it.each(TAKEN.map(([name, read, value, expected = value]) => ({ name, read, value, expected })))(
    'accepts $name=$value',
    ({ name, read, value, expected }) => expect(read(settingsOf({ [name]: value }))).toEqual(expected),
  );

  it.each(REFUSALS)('refuses %s=%s', (name, value, problem) => {
    expect(problemsOf({ [name]: value })).toEqual([problem.replace('VALUE', value)]);
  });

  it('accepts the greatest and the least of each number', () => {
    const longest = Object.fromEntries(TIMEOUTS.map((name) => [name, '2147483647']));
    const most = { RELAY_SLICE_BYTES: '8388608', MAX_IN_FLIGHT_PER_SESSION: '60000' };
    expect(problemsOf({ ...longest, ...most, MAX_IN_FLIGHT_REQUESTS: '1' })).toEqual([]);
  });

  const A = 'https://a.test/callback';
  const B = 'http://B.test:80/x?y=1,2';
  const PLACES = { ALLOWED_ORIGINS: 'https://a.test,http://b.test' };

  it.each([`${A},${B}`, `${B} , ${A},`, ` ${B}, ${A}`, `${B},${A}`])(
    'accepts a redirect URI for each origin, unchanged: IDP_REDIRECT_URI=%s',
    (value) => {
      const { redirectUris } = settingsOf({ ...PLACES, IDP_REDIRECT_URI: value }).identityProvider;
      expect(redirectUris.toSorted()).toEqual([B, A]);
    },
  );

  it.each([
    [`${A}#x,${B}`, `"${A}#x" must not contain a fragment`],
    [`${A},${B},https://a.test:443/other`, 'https://a.test must have only one redirect URI'],
    ['studio.app:/x,https://a.test/', '"studio.app:/x" is not an http or https address'],
    [`${A},https://`, '"https://" is not an http or https address'],
    [`${A},${A}`, 'https://a.test must have only one redirect URI'],
    [`${A},https://b.test/`, 'the origin of "https://b.test/" is not in ALLOWED_ORIGINS'],
  ])('refuses IDP_REDIRECT_URI=%s, because %s', (value, problem) => {
    const problems = problemsOf({ ...PLACES, IDP_REDIRECT_URI: value });
    expect(problems).toEqual([`IDP_REDIRECT_URI: ${problem}`]);
  });

  it('reports only that the origins of a list are not set, where they are not', () => {
    const problems = problemsOf({ ALLOWED_ORIGINS: '', IDP_REDIRECT_URI: `${A},${B}` });
    expect(problems).toEqual(['ALLOWED_ORIGINS is required and not set', ALL_NAMES]);
  });

  describe('a secret in a file', () => {
    const SECRETS = { REDIS_URL: REDIS, COOKIE_KEYS: KEYS, IDP_CLIENT_SECRET: 'a secret' };
    const folder = mkdtempSync(`${tmpdir()}/settings-`);
    afterAll(() => rmSync(folder, { recursive: true }));
    const file = (content: string) => {
      const path = `${folder}/${crypto.randomUUID()}`;
      writeFileSync(path, content);
      return path;
    };

    it('counts as if it stood in the environment, without the line break at its end', async () => {
      const files = Object.entries(SECRETS).map(([name, value]) => [`${name}_FILE`, file(`${value}\n`)]);
      expect(settingsOf(Object.fromEntries(files))).toEqual(settingsOf(SECRETS));
      const fromFile = await clientKeyOf({ IDP_CLIENT_KEY_FILE: file(PRIVATE_JWK) });
      expect(fromFile?.kid).toBe('gateway-1');
    });

    it.each(Object.keys(SECRETS))('is refused when its file is missing, empty or wrong: %s', (name) => {
      const problems = (path: string, value = '') => problemsOf({ [`${name}_FILE`]: path, [name]: value });
      expect(problems('/no/such')).toEqual([`${name}_FILE: /no/such cannot be read (ENOENT)`]);
      const empty = file(' \n');
      expect(problems(empty)).toEqual([`${name}_FILE: ${empty} is empty`]);
      const twice = `${name} and ${name}_FILE must not both be set`;
      expect(problems(file(REDIS), REDIS)).toContain(twice);
    });

    it('is not quoted when it stands in place of the path', () => {
      expect(problemsOf({ COOKIE_KEYS_FILE: 'the-secret' })).toEqual([
        'COOKIE_KEYS_FILE must be an absolute path',
      ]);
    });

    it('is never quoted', async () => {
      for (const name of ['REDIS_URL', 'COOKIE_KEYS', 'IDP_CLIENT_KEY']) {
        const outcome = await loadSettings({ ...REQUIRED, [`${name}_FILE`]: file('not-that-secret') });
        expect(outcome).toMatchObject({ ok: false, problems: [expect.stringContaining(name)] });
        expect(JSON.stringify(outcome)).not.toContain('not-that-secret');
      }
    });
  });

  it.each([
    ['127.0.0.1', ['127.0.0.1'], ['127.0.0.2', '::1', '203.0.113.7']],
    ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255'], ['9.255.255.255', '11.0.0.0']],
    ['10.1.2.3/9', ['10.0.0.1', '10.127.0.1'], ['10.128.0.1']],
    ['192.0.2.7/32', ['192.0.2.7'], ['192.0.2.6', '192.0.2.8']],
    ['128.0.0.0/1', ['128.0.0.0', '255.0.0.1'], ['127.255.255.255', 'ffff::1']],
    ['::1', ['::1'], ['::2', '0.0.0.1']],
    ['2001:DB8::/33', ['2001:db8::', '2001:db8:7fff::1'], ['2001:db8:8000::']],
    ['fd00::7/128', ['fd00::7'], ['fd00::8']],
    ['::ffff:10.0.0.1', ['10.0.0.1'], ['10.0.0.2']],
    [' ::1 ,, 10.0.0.0/8 , 192.0.2.7,', ['::1', '10.9.9.9', '192.0.2.7'], ['11.0.0.0', '192.0.2.8']],
  ])('trusts the proxies of TRUSTED_PROXIES=%s alone', (value, trusted, others) => {
    const environment = { FORWARD_CLIENT_ADDRESS: 'true', TRUSTED_PROXIES: value };
    const { isTrustedProxy } = settingsOf(environment);
    for (const address of trusted) expect(isTrustedProxy?.(address), address).toBe(true);
    for (const address of others) expect(isTrustedProxy?.(address), address).toBe(false);
    expect(warningsOf(environment)).toEqual([]);
  });

  it('names each entry of TRUSTED_PROXIES that is wrong', () => {
    const problem = (entry: string) =>
      `TRUSTED_PROXIES: "${entry}" is not an address or a network like 10.0.0.0/8`;
    const environment = { FORWARD_CLIENT_ADDRESS: 'true', TRUSTED_PROXIES: '127.0.0.1, nginx, ::1,10/8' };
    expect(problemsOf(environment)).toEqual([problem('nginx'), problem('10/8')]);
  });

  it('warns of TRUSTED_PROXIES without FORWARD_CLIENT_ADDRESS', () => {
    const warning = 'TRUSTED_PROXIES has no effect without FORWARD_CLIENT_ADDRESS=true';
    expect(settingsOf({ TRUSTED_PROXIES: '127.0.0.1' }).isTrustedProxy).toBeUndefined();
    expect(warningsOf({ TRUSTED_PROXIES: '127.0.0.1' })).toEqual([warning]);
    expect(warningsOf({ TRUSTED_PROXIES: '127.0.0.1', FORWARD_CLIENT_ADDRESS: 'false' })).toEqual([warning]);
  });

  it.each([
    ['0', 0],
    ['0.1', 0.1],
    ['1', 1],
  ])(
    'exports the share OTEL_TRACES_SAMPLER_ARG=%s of the traces, where there is an address',
    (value, share) => {
      const sampling = { OTEL_TRACES_SAMPLER_ARG: value };
      expect(settingsOf(sampling).traceShare).toBeUndefined();
      expect(settingsOf({ ...sampling, OTEL_EXPORTER_OTLP_ENDPOINT: COLLECTOR }).traceShare).toBe(share);
    },
  );

  it('has the memory that the process may use', () => {
    expect(settingsOf({}).memoryLimitBytes).toBe(memoryLimitBytes());
  });

  it.each(Object.keys(REQUIRED))('requires %s', (name) => {
    for (const value of [undefined, '', '  ']) {
      expect(problemsOf({ [name]: value })).toEqual([`${name} is required and not set`, ALL_NAMES]);
    }
  });

  it('names every problem at once, and the names of all settings where one is missing', () => {
    const environment = {
      PORT: 'x',
      UPSTREAM_URL: 'upstream.test',
      ALLOWED_ORIGINS: 'https://studio.test/, *',
      TIMEOUT_READ_MS: '0',
      TRUSTED_PROXIES: '::1',
      NODE_ENV: 'production',
    };
    expect(parseSettings(environment)).toEqual({
      ok: false,
      problems: [
        'ALLOWED_ORIGINS: "https://studio.test/" must be written as a browser sends it: https://studio.test',
        'ALLOWED_ORIGINS: "*" is not an origin like https://studio.example',
        'PORT must be a whole number from 0 to 65535, not "x"',
        'UPSTREAM_URL must be an http or https address, not "upstream.test"',
        'IDP_URL is required and not set',
        'IDP_CLIENT_ID is required and not set',
        'IDP_REDIRECT_URI is required and not set',
        'TIMEOUT_READ_MS must be a whole number from 1 to 2147483647, not "0"',
        ALL_NAMES,
      ],
      warnings: ['TRUSTED_PROXIES has no effect without FORWARD_CLIENT_ADDRESS=true'],
    });
  });

  it.each([
    ['https://studio.test/', 'https://studio.test'],
    ['https://studio.test/app', 'https://studio.test'],
    ['https://studio.test?', 'https://studio.test'],
    ['https://studio.test#', 'https://studio.test'],
    ['https://studio.test:443', 'https://studio.test'],
    ['http://studio.test:80', 'http://studio.test'],
    ['HTTPS://STUDIO.TEST', 'https://studio.test'],
    ['https://user:secret@studio.test', 'https://studio.test'],
    ['https://café.test', 'https://xn--caf-dma.test'],
    ['https:studio.test', 'https://studio.test'],
  ])('refuses the origin %s and suggests %s', (value, meant) => {
    const problem = `ALLOWED_ORIGINS: "${value}" must be written as a browser sends it: ${meant}`;
    expect(problemsOf({ ALLOWED_ORIGINS: value })).toEqual([problem]);
  });

  it.each<Environment>([{}, { COOKIE_SECURE: 'false' }, { COOKIE_SECURE: 'true' }])(
    'makes the cookies Secure in production with %j',
    (environment) => {
      expect(settingsOf({ ...environment, NODE_ENV: 'production' }).cookies.secure).toBe(true);
    },
  );

  it('sets no cookie prefix by default', () => {
    for (const value of [undefined, '', ' ']) {
      expect(settingsOf({ COOKIE_PREFIX: value }).cookies.prefix).toBe('');
    }
  });

  it.each(['__Host-', '__Host-Http-'] as const)(
    'accepts COOKIE_PREFIX=%s only where the cookies are Secure',
    (prefix) => {
      for (const secure of [{ NODE_ENV: 'production' }, { COOKIE_SECURE: 'true' }]) {
        const { cookies } = settingsOf({ COOKIE_PREFIX: prefix, ...secure });
        expect(cookies).toMatchObject({ prefix, secure: true });
      }
      expect(problemsOf({ COOKIE_PREFIX: prefix })).toEqual([
        'COOKIE_PREFIX needs Secure cookies: set NODE_ENV=production or COOKIE_SECURE=true',
      ]);
    },
  );

  it.each(['__Secure-', '__Http-', '__host-', '__Host', '__Host-Http-x', 'true'])(
    'refuses COOKIE_PREFIX=%s',
    (value) => {
      const problem = `COOKIE_PREFIX must be __Host- or __Host-Http-, not "${value}"`;
      expect(problemsOf({ COOKIE_PREFIX: value, COOKIE_SECURE: 'true' })).toEqual([problem]);
    },
  );

  it.each([
    ['too short', Buffer.alloc(31).toString('base64url')],
    ['too long', Buffer.alloc(33).toString('base64url')],
    ['not base64url', Buffer.alloc(32, 255).toString('base64')],
    ['empty', ''],
  ])('refuses a cookie key that is %s, and says only which one it is', (_, key) => {
    expect(problemsOf({ COOKIE_KEYS: `${KEYS},${key}` })).toEqual([
      'COOKIE_KEYS: key 3 must be 32 bytes in base64url',
    ]);
  });
});

describe('loadSettings() with an IDP_CLIENT_KEY', () => {
  const keyOf = (value: string) => clientKeyOf({ IDP_CLIENT_KEY: value });
  const algorithmOf = async (value: string) => (await keyOf(value))?.key.algorithm;

  it.each(SIGNING_ALGORITHMS)('accepts a JWK or a PEM for %s, and shows neither', async (alg) => {
    const { privateJwk, pem, secrets } = clientKeyPair(alg, 'a kid');
    const [fromJwk, fromPem] = [await keyOf(privateJwk), await keyOf(pem)];
    expect([fromJwk?.kid, fromPem?.kid]).toEqual(['a kid', undefined]);
    // Nothing in a PEM asks for PS256.
    if (alg !== 'PS256') expect(fromPem?.key.algorithm).toEqual(Object(fromJwk?.key.algorithm));
    expect([fromJwk?.key.extractable, fromPem?.key.extractable]).toEqual([false, false]);
    const outcomes = [await loadSettings({ ...REQUIRED, IDP_CLIENT_KEY: privateJwk })];
    outcomes.push(await loadSettings({ ...REQUIRED, IDP_CLIENT_KEY: pem }));
    expect(outcomes).toMatchObject([{ ok: true }, { ok: true }]);
    const shown = inspect([fromJwk, fromPem, outcomes], { depth: 9 }) + JSON.stringify(outcomes);
    for (const secret of [...secrets, pem]) expect(shown).not.toContain(secret);
  });

  it.each(SIGNING_ALGORITHMS)('finds the algorithm of a JWK for %s that does not name it', async (kind) => {
    const { privateJwk, pem } = clientKeyPair(kind);
    const { alg, ...jwk } = JSON.parse(privateJwk);
    expect(await algorithmOf(JSON.stringify(jwk))).toEqual(Object(await algorithmOf(pem)));
    expect(alg).toBe(kind);
  });

  it('imports a key once, and no other than the one that is set', async () => {
    const { credential } = settingsOf({ IDP_CLIENT_KEY: PRIVATE_JWK }).identityProvider;
    if (credential?.kind !== 'key') throw new Error('there is no key');
    const { key } = await credential.key.imported();
    expect((await credential.key.imported()).key).toBe(key);
    const data = Buffer.from('an assertion');
    const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key, data);
    const publicKey = { key: CLIENT_KEY.publicJwk, format: 'jwk', dsaEncoding: 'ieee-p1363' } as const;
    expect(verify('sha256', data, publicKey, Buffer.from(signature))).toBe(true);
  });

  it('accepts a PEM whose line ends an environment file has lost', async () => {
    const { pem } = CLIENT_KEY;
    expect(await algorithmOf(pem.replaceAll('\n', ' '))).toEqual(Object(await algorithmOf(pem)));
  });

  it('signs with PS256 only where a JWK asks for it, and otherwise with RS256', async () => {
    const RS256 = { name: 'RSASSA-PKCS1-v1_5', hash: { name: 'SHA-256' } };
    expect(await algorithmOf(clientKeyPair('PS256').privateJwk)).toMatchObject({ ...RS256, name: 'RSA-PSS' });
    expect(await algorithmOf(clientKeyPair('RS256').privateJwk)).toMatchObject(RS256);
    expect(await algorithmOf(clientKeyPair('PS256').pem)).toMatchObject(RS256);
  });

  it('accepts an Ed25519 JWK under its older name, EdDSA', async () => {
    const jwk = { ...JSON.parse(clientKeyPair('Ed25519').privateJwk), alg: 'EdDSA' };
    expect(await algorithmOf(JSON.stringify(jwk))).toEqual({ name: 'Ed25519' });
  });

  it('refuses it together with an IDP_CLIENT_SECRET', () => {
    const both = { IDP_CLIENT_SECRET: 'secret', IDP_CLIENT_KEY: PRIVATE_JWK };
    expect(problemsOf(both)).toEqual(['IDP_CLIENT_SECRET and IDP_CLIENT_KEY must not both be set']);
  });

  const PROBLEM =
    'IDP_CLIENT_KEY must be a private key for ES256, ES384, ES512, Ed25519, RS256 or PS256 (RSA with 2048 bits or ' +
    'more): a JWK in JSON on one line, whose "alg", if it has one, is that of the key, or PKCS#8 in PEM';
  const jwkWith = (change: object) => JSON.stringify({ ...JSON.parse(PRIVATE_JWK), ...change });
  const pemOf = (key: KeyObject) => String(key.export({ type: 'pkcs8', format: 'pem' }));
  const shortKey = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  it.each([
    ['that is no key at all', 'secret'],
    ['that is cut off', CLIENT_KEY.pem.slice(0, -40)],
    ['of broken JSON', PRIVATE_JWK.slice(0, -1)],
    ['that is public', JSON.stringify(CLIENT_KEY.publicJwk)],
    ['that is symmetric', '{"kty":"oct","k":"secret"}'],
    ['that is symmetric and claims not to be', '{"kty":"oct","k":"secret","alg":"ES256"}'],
    ['of another algorithm', jwkWith({ alg: 'RS256' })],
    ['of an algorithm for another curve', jwkWith({ alg: 'ES384' })],
    ['of an unknown algorithm', jwkWith({ alg: 'toString' })],
    ['whose algorithm is no text', jwkWith({ alg: 256 })],
    ['that must not sign', jwkWith({ key_ops: ['verify'] })],
    ['that is too short', pemOf(shortKey)],
    ['that is too short as a JWK', JSON.stringify(shortKey.export({ format: 'jwk' }))],
    ['for key agreement', pemOf(generateKeyPairSync('x25519').privateKey)],
  ])('refuses one %s without quoting it', async (_, value) => {
    expect(await loadSettings({ ...REQUIRED, NODE_ENV: 'production', IDP_CLIENT_KEY: value })).toEqual({
      ok: false,
      problems: [PROBLEM],
      warnings: [],
    });
  });

  it('reports a wrong key together with every other problem', async () => {
    const outcome = await loadSettings({
      ...REQUIRED,
      IDP_CLIENT_KEY: '{}',
      PORT: 'x',
      METRICS_PORT: '4175',
    });
    expect(outcome).toMatchObject({
      ok: false,
      problems: [expect.stringMatching(/^PORT /), PROBLEM, expect.stringMatching(/^METRICS_PORT /)],
    });
  });
});

describe('the warnings of parseSettings()', () => {
  it('say outside production that cookies are not Secure although an origin is https', () => {
    expect(warningsOf({ NODE_ENV: 'prod' })).toEqual([
      'NODE_ENV is not production: the cookies are not Secure, although an allowed origin is https; ' +
        'COOKIE_SECURE=true makes them Secure',
    ]);
    expect(warningsOf({ NODE_ENV: 'prod', COOKIE_SECURE: 'true' })).toEqual([]);
    expect(warningsOf({ NODE_ENV: 'prod', ALLOWED_ORIGINS: 'http://localhost:4180' })).toEqual([]);
    expect(warningsOf({})).toEqual([]);
  });

  const UNCHECKED = 'NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates of other servers are not checked';
  it('say outside production that certificates are not checked, where production does not start', () => {
    const environment = { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_ENV: 'production' };
    expect(problemsOf(environment)).toEqual([`${UNCHECKED}, which production does not allow`]);
    const elsewhere = { ...environment, NODE_ENV: '', ALLOWED_ORIGINS: 'http://localhost:4180' };
    expect(parseSettings({ ...REQUIRED, ...elsewhere })).toMatchObject({ ok: true, warnings: [UNCHECKED] });
  });

  it.each(['1', '', 'false', '00', ' 0'])('do not name NODE_TLS_REJECT_UNAUTHORIZED=%s', (value) => {
    expect(warningsOf({ NODE_TLS_REJECT_UNAUTHORIZED: value })).toEqual([]);
    expect(problemsOf({ NODE_TLS_REJECT_UNAUTHORIZED: value, NODE_ENV: 'production' })).toEqual([]);
  });
});
