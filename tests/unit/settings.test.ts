import { describe, expect, it } from 'bun:test';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { parseSettings, settingNames } from '../../src/gateway/settings/settings.ts';
import { createFolder } from '../support/temporary-folder.ts';
import { REQUIRED, testSettings } from '../support/world.ts';

/** Follows the problems when a required setting is missing. */
const READ_ON = 'deploy/settings.md says what each setting is';

/** What is at a place in the settings, such as `timeouts.readMs`. */
function at(path: string, environment: Environment): unknown {
  return path.split('.').reduce<unknown>((value, key) => Object(value)[key], testSettings(environment));
}

/** What is wrong with an environment; nothing when it is good. */
function problemsOf(environment: Environment): readonly string[] {
  const outcome = parseSettings({ ...REQUIRED, ...environment });
  return outcome.ok ? [] : outcome.problems;
}

function warningsOf(environment: Environment): readonly string[] {
  return parseSettings({ ...REQUIRED, NODE_ENV: 'production', ...environment }).warnings;
}

const keyOf = (byte: number, length = 32) => Buffer.alloc(length, byte).toString('base64url');
const KEYS = `${keyOf(1)}, ${keyOf(2)}`;
const REDIS = 'rediss://:secret@cache.test:6380/1';
const COLLECTOR = 'http://127.0.0.1:4318';
const SECRET = { kind: 'secret', secret: 'a secret' };
const KEY_WITH_QUOTES = '{"kty":"EC"}';
/** Values that are kept letter by letter, with ` | ` between them. */
const kept = (values: string) => Object.fromEntries(values.split(' | ').map((value) => [value, value]));

/** Whole numbers: their place, what they are without a value, the least and the most. */
const INTEGERS: [name: string, path: string, fallback: unknown, least: number, most: number][] = [
  ['PORT', 'port', 4175, 0, 65_535],
  ['METRICS_PORT', 'metricsPort', undefined, 0, 65_535],
  ['MAX_IN_FLIGHT_REQUESTS', 'maxInFlightRequests', 4000, 1, 60_000],
  ['MAX_IN_FLIGHT_PER_SESSION', 'maxInFlightPerSession', 100, 0, 60_000],
  ['MAX_GENERATIONS_PER_SESSION', 'maxGenerationsPerSession', 10, 0, 60_000],
  ['RELAY_SLICE_BYTES', 'relaySliceBytes', 262_144, 0, 8_388_608],
  ['REFRESH_REPLAY_SECONDS', 'refreshReplaySeconds', 60, 0, 3600],
  ['TIMEOUT_SIGN_IN_MS', 'timeouts.signInMs', 20_000, 1, 2_147_483_647],
  ['TIMEOUT_READ_MS', 'timeouts.readMs', 15_000, 1, 2_147_483_647],
  ['TIMEOUT_LOGOUT_MS', 'timeouts.logoutMs', 10_000, 1, 2_147_483_647],
  ['TIMEOUT_STREAM_MS', 'timeouts.streamMs', 280_000, 1, 2_147_483_647],
];

/** Settings with their place, what they are without a value, and what other values become. */
const OPTIONAL: [name: string, path: string, fallback: unknown, taken: object][] = [
  ['HOST', 'host', '0.0.0.0', kept('127.0.0.1')],
  ['SERVICE_NAME', 'serviceName', 'music-gateway', kept('studio gateway')],
  ['NODE_ENV', 'production', false, { production: true }],
  ['UPSTREAM_SIGN_IN_FIELD', 'upstreamSignInField', 'access_token', kept('token')],
  ['METRICS_HOST', 'metricsHost', '127.0.0.1', kept('0.0.0.0')],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'traceShare', undefined, { [COLLECTOR]: 1 }],
  ['OTEL_TRACES_SAMPLER_ARG', 'traceShare', undefined, { 0.5: undefined }],
  ['LOG_LEVEL', 'logLevel', 'info', kept('debug')],
  ['LOG_SESSION', 'logSession', false, { true: true }],
  ['REFRESH_OUTAGE', 'refreshOutage', 'sign-out', kept('keep')],
  ['REDIS_URL', 'redisUrl', undefined, kept(`${REDIS} | valkey://a.test | redis+unix:///run/redis.sock`)],
  ['IDP_CLIENT_SECRET', 'identityProvider.credential', undefined, { 'a secret': SECRET }],
  ['IDP_CLIENT_KEY', 'identityProvider.credential.kind', undefined, { 'a key': 'key' }],
  ['SIGN_OUT_REVOKES', 'signOutRevokes', false, { true: true }],
  ['COOKIE_KEYS', 'cookies.keys', [], { [KEYS]: [Buffer.alloc(32, 1), Buffer.alloc(32, 2)] }],
  ['COOKIE_PREFIX', 'cookies.prefix', '', kept('__Host- | __Host-Http-')],
  ['COOKIE_SAME_SITE', 'cookies.sameSite', 'lax', kept('strict')],
  ['COOKIE_SECURE', 'cookies.secure', false, { true: true }],
  ['COOKIE_KEYS_ACCEPT_PLAIN', 'cookies.acceptPlain', false, { true: true }],
  ['FORWARD_CLIENT_ADDRESS', 'forwardClientAddress', false, { true: true }],
  ['SAME_ORIGIN', 'sameOrigin', false, { true: true }],
];

const TOKEN_URL = ['IDP_TOKEN_URL', 'identityProvider.tokenUrl'] as const;
const REDIRECT = ['IDP_REDIRECT_URI', 'identityProvider.redirectUris.0'] as const;
const ORIGINS = ['ALLOWED_ORIGINS', 'allowedOrigins'] as const;
const A = 'https://a.test/callback';
const B = 'http://B.test:80/x?y=1,2';
/** Other settings on which those in the tables below depend. */
const BESIDE = {
  NODE_ENV: 'production',
  ALLOWED_ORIGINS: 'https://a.test,http://b.test',
  OTEL_EXPORTER_OTLP_ENDPOINT: COLLECTOR,
};
/** What values of the required settings become, and of those that depend on others. */
const TAKEN: [name: string, path: string, taken: object][] = [
  ['UPSTREAM_URL', 'upstreamUrl', { 'http://[::1]:8080/': 'http://[::1]:8080' }],
  ['UPSTREAM_URL', 'upstreamUrl', { 'https://HOST.test:443/two/parts///': 'https://host.test/two/parts' }],
  ['IDP_URL', 'identityProvider.tokenUrl', { 'https://idp.test/a//': 'https://idp.test/a/oauth/token' }],
  ['IDP_URL', 'identityProvider.issuer', kept('https://IDP.test:443/tenant/')],
  [...TOKEN_URL, kept('http://[::1]:80/a//token/ | https://idp.test/v2/token?tenant=a%2Fb')],
  // A comma separates two URIs only before http or https.
  [...REDIRECT, kept('HTTPS://Studio.Test:443/Callback/../x?a=b%20c')],
  [...REDIRECT, kept('app:/b,x | https://a.test/?x=1,2,http')],
  ['IDP_REDIRECT_URI', 'identityProvider.redirectUris', { [` ${A} , ${B},`]: [A, B] }],
  [...ORIGINS, { ' https://a.b , http://c:84,,https://a.b,': new Set(['https://a.b', 'http://c:84']) }],
  [...ORIGINS, { 'https://xn--caf-dma.test': new Set(['https://xn--caf-dma.test']) }],
  ['OTEL_TRACES_SAMPLER_ARG', 'traceShare', { 0: 0, 0.1: 0.1, 1: 1 }],
];

const FLAGS =
  'COOKIE_KEYS_ACCEPT_PLAIN COOKIE_SECURE SIGN_OUT_REVOKES FORWARD_CLIENT_ADDRESS SAME_ORIGIN LOG_SESSION';
const BASES = 'UPSTREAM_URL IDP_URL OTEL_EXPORTER_OTLP_ENDPOINT';
const URLS = `${BASES} IDP_TOKEN_URL`;
const CREDENTIALS = ' must not contain credentials';
const FRAGMENT = ' must not contain a fragment';
const NOT_REDIS =
  ' must be an address like redis://127.0.0.1:6379, or redis+unix://:password@localhost/run/redis.sock for a socket';
const NO_NETWORK = ' is not an address or a network like 10.0.0.0/8';
const UNCHECKED = 'certificates of other servers are not checked';
const NO_KEY = ' must be 32 bytes in base64url';
const SENT = ': "VALUE" must be written as a browser sends it: https://';
const NO_ORIGIN = ': "VALUE" is not an origin like https://studio.example';

/** Settings, how the problem with them goes on, and values that have it, with ` | ` between them. */
const REFUSED: readonly [names: string, problem: string, values: string][] = [
  [FLAGS, ' must be true or false, not "VALUE"', 'yes | TRUE'],
  ['NODE_ENV', ' must be production, development, or test, not "VALUE"', 'prod | Production | staging'],
  ['COOKIE_SAME_SITE', ' must be lax or strict, not "VALUE"', 'none'],
  ['COOKIE_PREFIX', ' must be __Host- or __Host-Http-, not "VALUE"', '__Secure- | __host-'],
  ['REFRESH_OUTAGE', ' must be sign-out or keep, not "VALUE"', 'Keep'],
  ['LOG_LEVEL', ' must be fatal, error, warn, info, debug, trace, or silent, not "VALUE"', 'INFO'],
  ['OTEL_TRACES_SAMPLER_ARG', ' must be a number from 0 to 1, not "VALUE"', '-0.1 | 1.1 | half | 0,1'],
  [URLS, ' must be an http or https address, not "VALUE"', 'host.test | ftp://a.test | http://'],
  [URLS, CREDENTIALS, 'https://:secret@a.test | https://user@a.test | htp://u:s@a.test:port'],
  [BASES, ' must not contain a query or a fragment', 'https://a.test?a=b | https://a.test/#'],
  ['IDP_TOKEN_URL', FRAGMENT, 'https://idp.test/token#secret | https://idp.test/token?a#'],
  ['IDP_REDIRECT_URI', FRAGMENT, 'https://studio.test/callback#a'],
  ['IDP_REDIRECT_URI', ' must be an absolute URI, not "VALUE"', '/callback | https:// | ,'],
  ['IDP_REDIRECT_URI', `: "${A}#x" must not contain a fragment`, `${A}#x,${B}`],
  ['IDP_REDIRECT_URI', ': https://a.test must have only one redirect URI', `${A},${B},https://a.test:443/y`],
  ['IDP_REDIRECT_URI', ': "app:/x" is not an http or https address', `app:/x,${A}`],
  ['IDP_REDIRECT_URI', ': "https://" is not an http or https address', `${A},https://`],
  ['IDP_REDIRECT_URI', ': the origin of "https://c.test/" is not in ALLOWED_ORIGINS', `${A},https://c.test/`],
  ['TRUSTED_PROXIES', `: "VALUE"${NO_NETWORK}`, '10.0.0.0/33 | ::/129 | 10.0.0.0/ | 10.0.0/8 | localhost'],
  ['TRUSTED_PROXIES', `: "VALUE"${NO_NETWORK}`, '[::1] | fe80::1%eth0 | ::ffff:10.0.0.0/104 | 10.0.0.0/8/8'],
  ['TRUSTED_PROXIES', ': "VALUE" would trust every client', '0.0.0.0/0 | 10.0.0.1/0 | ::/0'],
  ['REDIS_URL', NOT_REDIS, 'http://:secret@cache.test | cache.test:6379 | redis://:secret@a.test/b'],
  ['REDIS_URL', NOT_REDIS, 'redis+unix://:secret@/run/redis.sock'],
  ['ALLOWED_ORIGINS', NO_ORIGIN, '* | null | a.test | ftp://a.test | https://*.a.test'],
  ['ALLOWED_ORIGINS', `${SENT}a.test`, 'https://a.test/ | https://a.test? | https://u:a@a.test'],
  ['ALLOWED_ORIGINS', `${SENT}xn--caf-dma.test`, 'https://café.test'],
  ['IDP_TOKEN_URL', ' must be an http or https address, not "ftp://a.test/b"', 'ftp://a.test/b?key=secret'],
  ['COOKIE_KEYS', `: key 1${NO_KEY}`, `${keyOf(0, 31)} | ${keyOf(0, 33)} | ${'/'.repeat(42)}8=`],
  ['COOKIE_KEYS', `: key 3${NO_KEY}`, `${KEYS}, | ${KEYS},${keyOf(0, 31)}`],
  ['ALLOWED_ORIGINS', ' must name at least one origin', ','],
  ['NODE_TLS_REJECT_UNAUTHORIZED', ` is 0: ${UNCHECKED}, which production does not allow`, '0'],
  ['METRICS_PORT', ' must not be PORT (4175), which is public', '4175'],
];
describe('parseSettings()', () => {
  it.each(Object.keys(REQUIRED))('requires %s', (name) => {
    for (const value of [undefined, '', '  ']) {
      expect(problemsOf({ [name]: value })).toEqual([`${name} is required and not set`, READ_ON]);
    }
  });

  it.each(OPTIONAL)('reads %s, and has a default for it', (name, path, fallback, taken) => {
    const become = (value: string | undefined) => at(path, { COOKIE_SECURE: 'true', [name]: value });
    for (const value of [undefined, '', ' \t ']) expect(become(value)).toEqual(fallback);
    for (const [value, expected] of Object.entries(taken)) {
      for (const given of [value, ` ${value}\t`]) expect(become(given)).toEqual(expected);
      expect(warningsOf({ [name]: value })).toEqual([]);
    }
  });

  it.each(TAKEN)('reads %s as %s: %j', (name, path, taken) => {
    for (const [value, expected] of Object.entries(taken))
      expect(at(path, { ...BESIDE, [name]: value })).toEqual(expected);
  });

  it.each(REFUSED)('refuses %s, which %s: %s', (names, problem, values) => {
    for (const name of names.split(' ')) {
      for (const value of values.split(' | ')) {
        const problems = problemsOf({ ...BESIDE, [name]: value });
        expect(problems).toEqual([name + problem.replace('VALUE', value)]);
      }
    }
  });

  it.each(INTEGERS)('reads %s as %s: %s, or from %d to %d', (name, path, fallback, least, most) => {
    for (const value of [undefined, '', ' \t ']) expect(at(path, { [name]: value })).toBe(fallback);
    expect(at(path, { [name]: `${least}` })).toBe(least);
    expect(at(path, { [name]: ` 00${most}\t` })).toBe(most);
    const problem = `${name} must be a whole number from ${least} to ${most}, not `;
    for (const value of [`${least - 1}`, `${most + 1}`, '+80', '80.0', '8e1', '0x50', '80 81', '٨٠', 'NaN']) {
      expect(problemsOf({ [name]: value })).toEqual([`${problem}"${value}"`]);
    }
  });

  it('makes the cookies Secure in production, and refuses a COOKIE_PREFIX only where they are not Secure', () => {
    const production = { NODE_ENV: 'production', COOKIE_SECURE: 'false', COOKIE_PREFIX: '__Host-' };
    expect(testSettings(production).cookies.secure).toBe(true);
    const problem = 'COOKIE_PREFIX needs Secure cookies: set NODE_ENV=production or COOKIE_SECURE=true';
    expect(problemsOf({ ...production, NODE_ENV: '' })).toEqual([problem]);
  });
});

it.each([
  ['REDIS_URL', REDIS],
  ['COOKIE_KEYS', KEYS],
  ['IDP_CLIENT_SECRET', 'a secret'],
  ['IDP_CLIENT_KEY', 'a key'],
])('%s can be in a file, without its line break, whose path must be right', async (name, value) => {
  await using folder = await createFolder();
  const file = async (content: string) => {
    const path = `${folder.path}/${crypto.randomUUID()}`;
    await Bun.write(path, content);
    return path;
  };
  const path = OPTIONAL.find(([each]) => each === name)?.[1] ?? expect.unreachable();
  expect(at(path, { [`${name}_FILE`]: await file(`${value}\n`) })).toEqual(at(path, { [name]: value }));

  const problems = (path: string, value = '') => problemsOf({ [`${name}_FILE`]: path, [name]: value });
  expect(problems('/no/such')).toEqual([`${name}_FILE: /no/such cannot be read (ENOENT)`]);
  const empty = await file(' \n');
  expect(problems(empty)).toEqual([`${name}_FILE: ${empty} is empty`]);
  expect(problems(await file(value), value)).toContain(`${name} and ${name}_FILE must not both be set`);
  // It may be the secret itself.
  expect(problems('the-secret')).toEqual([`${name}_FILE must be an absolute path`]);
});

const QUOTES =
  'quotes have stayed in the value: leave them out, as docker and podman keep those of an env file';
const COMMENT = 'a comment has stayed in the value: give it a line of its own';

it.each([
  ['IDP_CLIENT_ID', '"music"', QUOTES],
  ['IDP_CLIENT_ID', "'music'", QUOTES],
  ['IDP_CLIENT_ID', '""', QUOTES],
  ['IDP_CLIENT_ID', 'music # at the provider', COMMENT],
  ['ALLOWED_ORIGINS', '"https://studio.test"', QUOTES],
  ['ALLOWED_ORIGINS', '"https://studio.test", "https://other.test"', QUOTES],
  ['ALLOWED_ORIGINS', '"https://studio.test,https://other.test"', QUOTES],
  ['UPSTREAM_URL', '"http://upstream.test" # of the API', COMMENT],
  ['PORT', "'80'", QUOTES],
  ['METRICS_PORT', '9464\t# not public', COMMENT],
  ['SAME_ORIGIN', '"true"', QUOTES],
  ['LOG_LEVEL', '# info', COMMENT],
  ['TRUSTED_PROXIES', '"10.0.0.0/8"', QUOTES],
  ['REDIS_URL', `"${REDIS}"`, QUOTES],
  ['IDP_CLIENT_SECRET', '"a secret"', QUOTES],
])('parseSettings() names what an env file has left in %s=%s', (name, value, leftover) => {
  expect(problemsOf({ SAME_ORIGIN: 'true', [name]: value })).toContain(`${name}: ${leftover}`);
  expect(problemsOf({ SAME_ORIGIN: 'true', [name]: value }).join()).not.toContain('"');
});

it.each([
  ['SERVICE_NAME', 'the "studio"', 'serviceName', 'the "studio"'],
  ['SERVICE_NAME', 'studio#1', 'serviceName', 'studio#1'],
  ['IDP_CLIENT_SECRET', '#a #secret', 'identityProvider.credential.secret', '#a #secret'],
  // Its quotes, and that it is imported with them: client-key.test.ts.
  ['IDP_CLIENT_KEY', KEY_WITH_QUOTES, 'identityProvider.credential.kind', 'key'],
  ['COOKIE_KEYS', KEYS, 'cookies.keys', [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]],
])('parseSettings() takes %s=%s as it is', (name, value, path, taken) => {
  expect(problemsOf({ [name]: value })).toEqual([]);
  expect(at(path, { [name]: value })).toEqual(taken);
});

const INSECURE = { NODE_ENV: 'development', ALLOWED_ORIGINS: 'https://studio.test' };
const SECURE = { ...INSECURE, COOKIE_SECURE: 'true' };
const NO_EFFECT = 'TRUSTED_PROXIES has no effect without FORWARD_CLIENT_ADDRESS=true or SAME_ORIGIN=true';
const PLAIN =
  'NODE_ENV is not production: the cookies are not Secure, although an allowed origin is https; ' +
  'COOKIE_SECURE=true makes them Secure';

const OPEN = 'everyone who can reach METRICS_PORT there can read the metrics';
const OWN_SITE = "are on different sites: browsers send the cookies only from the gateway's own site";
/** Lists of origins, and those that are named because they are on different sites. */
const SITES: readonly [origins: string, named: string][] = [
  ['https://studio.example,https://a.studio.example:8443,https://b.c.studio.example', ''],
  [
    'https://studio.example,https://a.studio.example,https://player.example',
    'https://studio.example and https://player.example',
  ],
  ['http://studio.example,https://studio.example', 'http://studio.example and https://studio.example'],
  [
    'https://a.b.test,http://localhost:5173,https://c.test',
    'https://a.b.test, http://localhost:5173, and https://c.test',
  ],
  ['http://10.0.0.1:1,http://10.0.0.1:2', ''],
  ['http://10.0.0.1,http://11.0.0.1', 'http://10.0.0.1 and http://11.0.0.1'],
  ['http://[2001:db8::1],http://[2001:db8::2]', 'http://[2001:db8::1] and http://[2001:db8::2]'],
  ['http://localhost:1,http://a.localhost,http://127.0.0.1,http://[::1]', ''],
];

it.each<[environment: Record<string, string>, warnings: string[]]>([
  [INSECURE, [PLAIN]],
  [SECURE, []],
  [{ NODE_ENV: 'test' }, []],
  [{ TRUSTED_PROXIES: '127.0.0.1' }, [NO_EFFECT]],
  [{ TRUSTED_PROXIES: '127.0.0.1', FORWARD_CLIENT_ADDRESS: 'true' }, []],
  [{ TRUSTED_PROXIES: '127.0.0.1', SAME_ORIGIN: 'true' }, []],
  [{ ...SECURE, NODE_TLS_REJECT_UNAUTHORIZED: '0' }, [`NODE_TLS_REJECT_UNAUTHORIZED is 0: ${UNCHECKED}`]],
  // Bun checks them with any other value.
  [{ NODE_TLS_REJECT_UNAUTHORIZED: 'false' }, []],
  ...['SIGN_IN', 'READ', 'LOGOUT', 'STREAM'].map((name): [Record<string, string>, string[]] => {
    const [is, meant] = ['is 999 milliseconds, less than a second', 'are seconds meant?'];
    return [{ [`TIMEOUT_${name}_MS`]: '999' }, [`TIMEOUT_${name}_MS ${is}: ${meant}`]];
  }),
  [{ TIMEOUT_READ_MS: '1000' }, []],
  [{ METRICS_PORT: '0', METRICS_HOST: '0.0.0.0' }, [`METRICS_HOST is 0.0.0.0: ${OPEN}`]],
  [{ METRICS_PORT: '9464', METRICS_HOST: '::' }, [`METRICS_HOST is ::: ${OPEN}`]],
  [{ METRICS_PORT: '9464', METRICS_HOST: '10.0.0.1' }, []],
  [{ METRICS_HOST: '0.0.0.0' }, []],
  ...SITES.map(([origins, named]): [Record<string, string>, string[]] => {
    return [{ ALLOWED_ORIGINS: origins }, named ? [`ALLOWED_ORIGINS: ${named} ${OWN_SITE}`] : []];
  }),
])('parseSettings() warns of %j: %j', (environment, warnings) => {
  expect([warningsOf(environment), problemsOf(environment)]).toEqual([warnings, []]);
});

it.each([
  ['COOKIE_KEY', 'COOKIE_KEYS'],
  ['COOKIE_KEY_FILE', 'COOKIE_KEYS_FILE'],
  ['REFRESH_REPLAY_SECS', 'REFRESH_REPLAY_SECONDS'],
  ['TRUSTED_PROXY', 'TRUSTED_PROXIES'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['TIMEOUT_STREAM', 'TIMEOUT_STREAM_MS'],
  ['upstream_url', 'UPSTREAM_URL'],
])('parseSettings() warns that %s is not %s, without its value', (name, meant) => {
  expect(warningsOf({ [name]: 'hush-hush' })).toEqual([`${name} is not a setting: is ${meant} meant?`]);
  expect(warningsOf({ [name]: ' ' })).toEqual([]);
});

it('parseSettings() warns of no name of a setting, nor of what a shell, Kubernetes or OpenTelemetry sets', () => {
  const strangers =
    'HOME HOSTNAME LOGNAME PATH PS1 PWD SHELL TERM TZ USER _ NODE_PATH NODE_OPTIONS NODE_EXTRA_CA_CERTS NO_PROXY ' +
    'REDIS_PORT REDIS_SERVICE_HOST REDIS_PORT_6379_TCP IDP_PORT MUSIC_GATEWAY_PORT CREDENTIALS_DIRECTORY ' +
    'OTEL_TRACES_SAMPLER OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_TIMEOUT OTEL_EXPORTER_OTLP_PROTOCOL ' +
    'OTEL_SERVICE_NAME OTEL_EXPORTER_OTLP_TRACES_ENDPOINT BUN_CONFIG_MAX_HTTP_REQUESTS NODE_TLS_REJECT_UNAUTHORIZED';
  const names = [...settingNames(), ...strangers.split(' ')];
  const { warnings } = parseSettings(Object.fromEntries(names.map((name) => [name, 'set'])));
  expect(warnings.filter((warning) => warning.includes('is not a setting'))).toEqual([]);
});
