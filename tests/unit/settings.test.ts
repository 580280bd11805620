import { describe, expect, it } from 'bun:test';
import { generateKeyPairSync } from 'node:crypto';
import { inspect } from 'node:util';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { parseSettings, type Settings } from '../../src/gateway/settings/settings.ts';
import { clientKeyPair, SIGNING_ALGORITHMS } from '../support/client-keys.ts';

const REQUIRED = {
  UPSTREAM_URL: 'https://upstream.test/base',
  IDP_URL: 'https://idp.test',
  IDP_CLIENT_ID: 'studio',
  IDP_REDIRECT_URI: 'https://studio.test/callback',
  ALLOWED_ORIGINS: 'https://studio.test',
};

const GiB = 1024 ** 3;

/** The settings of a process that may use 1 GiB. */
function settingsOf(environment: Environment, memoryBytes = GiB): Settings {
  const outcome = parseSettings({ ...REQUIRED, ...environment }, memoryBytes);
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
const KEYS = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64url')).join(', ');

const OPTIONAL: [
  name: string,
  read: (settings: Settings) => unknown,
  fallback: unknown,
  given: string,
  taken: unknown,
][] = [
  ['PORT', ({ port }) => port, 4175, '8080', 8080],
  ['HOST', ({ host }) => host, '0.0.0.0', '127.0.0.1', '127.0.0.1'],
  ['SERVICE_NAME', ({ serviceName }) => serviceName, 'music-gateway', 'studio gateway', 'studio gateway'],
  ['NODE_ENV', ({ production }) => production, false, 'production', true],
  [
    'UPSTREAM_SIGN_IN_FIELD',
    ({ upstreamSignInField }) => upstreamSignInField,
    'access_token',
    'token',
    'token',
  ],
  ['MAX_IN_FLIGHT_REQUESTS', ({ maxInFlightRequests }) => maxInFlightRequests, 4000, '60000', 60_000],
  ['MAX_IN_FLIGHT_PER_SESSION', ({ maxInFlightPerSession }) => maxInFlightPerSession, 100, '0', 0],
  ['MAX_STREAMED_BODIES', ({ maxStreamedBodies }) => maxStreamedBodies, 345, '1', 1],
  ['METRICS_PORT', ({ metricsPort }) => metricsPort, undefined, '9464', 9464],
  ['METRICS_HOST', ({ metricsHost }) => metricsHost, '127.0.0.1', '0.0.0.0', '0.0.0.0'],
  ['LOG_LEVEL', ({ logLevel }) => logLevel, 'info', 'debug', 'debug'],
  ['TIMEOUT_SIGN_IN_MS', ({ timeouts }) => timeouts.signInMs, 20_000, '1', 1],
  ['TIMEOUT_READ_MS', ({ timeouts }) => timeouts.readMs, 15_000, '2', 2],
  ['TIMEOUT_LOGOUT_MS', ({ timeouts }) => timeouts.logoutMs, 10_000, '3', 3],
  ['TIMEOUT_STREAM_MS', ({ timeouts }) => timeouts.streamMs, 280_000, '4', 4],
  ['REFRESH_REPLAY_SECONDS', ({ refreshReplaySeconds }) => refreshReplaySeconds, 60, '0', 0],
  ['REFRESH_OUTAGE', ({ refreshOutage }) => refreshOutage, 'sign-out', 'keep', 'keep'],
  [
    'REDIS_URL',
    ({ redisUrl }) => redisUrl,
    undefined,
    'rediss://:secret@cache.test:6380/1',
    'rediss://:secret@cache.test:6380/1',
  ],
  [
    'IDP_TOKEN_URL',
    ({ identityProvider }) => identityProvider.tokenUrl,
    'https://idp.test/oauth/token',
    'https://tokens.test/a//b/?tenant=1',
    'https://tokens.test/a//b/?tenant=1',
  ],
  [
    'IDP_CLIENT_SECRET',
    ({ identityProvider }) => identityProvider.credential,
    undefined,
    'a secret',
    { kind: 'secret', secret: 'a secret' },
  ],
  [
    'IDP_CLIENT_KEY',
    ({ identityProvider: { credential } }) => (credential?.kind === 'key' ? credential.key.kid : credential),
    undefined,
    CLIENT_KEY.privateJwk,
    'gateway-1',
  ],
  ['SIGN_OUT_REVOKES', ({ signOutRevokes }) => signOutRevokes, false, 'true', true],
  ['COOKIE_KEYS', ({ cookies }) => cookies.keys, [], KEYS, [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]],
  ['COOKIE_SAME_SITE', ({ cookies }) => cookies.sameSite, 'lax', 'strict', 'strict'],
  ['COOKIE_SECURE', ({ cookies }) => cookies.secure, false, 'true', true],
  ['COOKIE_KEYS_ACCEPT_PLAIN', ({ cookies }) => cookies.acceptPlain, false, 'true', true],
];

describe('parseSettings()', () => {
  it('takes the required settings as they are given', () => {
    expect(settingsOf({})).toMatchObject({
      upstreamUrl: 'https://upstream.test/base',
      identityProvider: {
        issuer: 'https://idp.test',
        tokenUrl: 'https://idp.test/oauth/token',
        credential: undefined,
        clientId: 'studio',
        redirectUri: 'https://studio.test/callback',
      },
      allowedOrigins: new Set(['https://studio.test']),
    });
  });

  it.each(OPTIONAL)('has a default for %s', (name, read, fallback, given, taken) => {
    expect(read(settingsOf({}))).toEqual(fallback);
    expect(read(settingsOf({ [name]: undefined }))).toEqual(fallback);
    expect(read(settingsOf({ [name]: '' }))).toEqual(fallback);
    expect(read(settingsOf({ [name]: given }))).toEqual(taken);
  });

  it.each(['PORT', 'HOST', 'SERVICE_NAME', 'UPSTREAM_SIGN_IN_FIELD', 'TIMEOUT_READ_MS'])(
    'takes a blank %s for one that is not set',
    (name) => {
      expect(settingsOf({ [name]: ' \t ' })).toEqual(settingsOf({}));
    },
  );

  it('takes no notice of blanks around a value', () => {
    const blanks = Object.fromEntries(
      Object.entries(REQUIRED).map(([name, value]) => [name, `  ${value}\t`]),
    );
    expect(settingsOf({ ...blanks, PORT: ' 80 ', SERVICE_NAME: ' a b ' })).toEqual(
      settingsOf({ PORT: '80', SERVICE_NAME: 'a b' }),
    );
  });

  it.each(Object.keys(REQUIRED))('misses %s', (name) => {
    for (const value of [undefined, '', '  ']) {
      expect(problemsOf({ [name]: value })).toEqual([`${name} is required and not set`]);
    }
  });

  it('names every problem at once', () => {
    const outcome = parseSettings({
      PORT: 'x',
      UPSTREAM_URL: 'upstream.test',
      ALLOWED_ORIGINS: 'https://studio.test/, *',
      TIMEOUT_READ_MS: '0',
      TIMEOUT_STREAM_MS: 'soon',
      TIMEOUT_STREAM: '5',
      NODE_ENV: 'production',
    });
    expect(outcome).toEqual({
      ok: false,
      problems: [
        'PORT must be a whole number from 0 to 65535, not "x"',
        'UPSTREAM_URL must be an http or https address, not "upstream.test"',
        'IDP_URL is required and not set',
        'IDP_CLIENT_ID is required and not set',
        'IDP_REDIRECT_URI is required and not set',
        'ALLOWED_ORIGINS: "https://studio.test/" must be written as a browser sends it: https://studio.test',
        'ALLOWED_ORIGINS: "*" is not an origin like https://studio.example',
        'TIMEOUT_READ_MS must be a whole number from 1 to 2147483647, not "0"',
        'TIMEOUT_STREAM_MS must be a whole number from 1 to 2147483647, not "soon"',
      ],
      warnings: ['TIMEOUT_STREAM is not a setting of the gateway; did you mean TIMEOUT_STREAM_MS?'],
    });
  });

  it('says in an empty environment all that is required', () => {
    expect(parseSettings({})).toEqual({
      ok: false,
      problems: Object.keys(REQUIRED).map((name) => `${name} is required and not set`),
      warnings: [],
    });
  });
});

describe('the number settings', () => {
  const TIMEOUTS = ['TIMEOUT_SIGN_IN_MS', 'TIMEOUT_READ_MS', 'TIMEOUT_LOGOUT_MS', 'TIMEOUT_STREAM_MS'];

  it.each(['0', '1', '65535', '00080'])('take the PORT %s', (value) => {
    expect(settingsOf({ PORT: value }).port).toBe(Number(value));
  });

  it.each([
    '65536',
    '-1',
    '+80',
    '80.0',
    '8e1',
    '0x50',
    '80 81',
    'http',
    '٨٠',
    'NaN',
    'Infinity',
    '1'.repeat(400),
  ])('do not take the PORT %s', (value) => {
    expect(problemsOf({ PORT: value })).toEqual([
      `PORT must be a whole number from 0 to 65535, not "${value}"`,
    ]);
  });

  it.each(TIMEOUTS)('take %s from 1 ms to the longest timer', (name) => {
    expect(problemsOf({ [name]: '1' })).toEqual([]);
    expect(problemsOf({ [name]: '2147483647' })).toEqual([]);
    for (const value of ['0', '2147483648', '-5', '1.5', '20s', '20_000', '1e3']) {
      expect(problemsOf({ [name]: value })).toEqual([
        `${name} must be a whole number from 1 to 2147483647, not "${value}"`,
      ]);
    }
  });
});

describe('the limits of what is in flight', () => {
  it.each([
    ['MAX_IN_FLIGHT_REQUESTS', 1, 60_000],
    ['MAX_IN_FLIGHT_PER_SESSION', 0, 60_000],
    ['MAX_STREAMED_BODIES', 1, 1_000_000],
  ])('take %s from %d to %d', (name, least, most) => {
    expect(problemsOf({ [name]: String(least) })).toEqual([]);
    expect(problemsOf({ [name]: String(most) })).toEqual([]);
    for (const value of [String(least - 1), String(most + 1), '1.5', 'many']) {
      expect(problemsOf({ [name]: value })).toEqual([
        `${name} must be a whole number from ${least} to ${most}, not "${value}"`,
      ]);
    }
  });

  it('follow the memory where MAX_STREAMED_BODIES is not set', () => {
    expect(settingsOf({}, GiB).memoryLimitBytes).toBe(GiB);
    expect(settingsOf({}, GiB / 4).maxStreamedBodies).toBe(17);
    expect(settingsOf({ MAX_IN_FLIGHT_REQUESTS: '1' }, GiB / 4).maxStreamedBodies).toBe(44);
    expect(settingsOf({ MAX_STREAMED_BODIES: '100' }, GiB / 4).maxStreamedBodies).toBe(100);
  });
});

describe('a setting that has been renamed', () => {
  it.each<Environment>([
    { MAX_HELD_REQUESTS: '4000' },
    { MAX_HELD_REQUESTS: '4000', MAX_IN_FLIGHT_REQUESTS: '4000' },
  ])('stops the start, which says what it is called now: %j', (environment) => {
    const outcome = parseSettings({ ...REQUIRED, NODE_ENV: 'production', ...environment });
    const problems = ['MAX_HELD_REQUESTS is now called MAX_IN_FLIGHT_REQUESTS'];
    expect(outcome).toEqual({ ok: false, problems, warnings: [] });
  });
});

describe.each<['UPSTREAM_URL' | 'IDP_URL', (settings: Settings) => string]>([
  ['UPSTREAM_URL', ({ upstreamUrl }) => upstreamUrl],
  ['IDP_URL', ({ identityProvider }) => identityProvider.tokenUrl.replace('/oauth/token', '')],
])('%s', (name, read) => {
  it.each([
    ['http://host', 'http://host'],
    ['https://host.test:8443', 'https://host.test:8443'],
    ['https://host.test/', 'https://host.test'],
    ['https://host.test/base', 'https://host.test/base'],
    ['https://host.test/two/parts///', 'https://host.test/two/parts'],
    ['http://[::1]:8080/', 'http://[::1]:8080'],
  ])('can be %s', (value, expected) => {
    expect(read(settingsOf({ [name]: value }))).toBe(expected);
  });

  it.each([
    'host.test',
    '/base',
    'ftp://host.test',
    'ws://host.test',
    'file:///etc/passwd',
    'http://',
    'http://a b',
    'x',
  ])('cannot be %s', (value) => {
    expect(problemsOf({ [name]: value })).toEqual([
      `${name} must be an http or https address, not "${value}"`,
    ]);
  });

  it.each([
    'https://user:secret@host.test',
    'https://user@host.test',
    'https://:secret@host.test/base',
    'https://user:secret@no host',
    'https://user:secret@host.test:port',
  ])('cannot hold credentials, which are not repeated: %s', (value) => {
    expect(problemsOf({ [name]: value })).toEqual([`${name} must not hold a user name or a password`]);
  });

  it.each(['https://host.test?a=b', 'https://host.test/base?', 'https://host.test/#a', 'https://host.test#'])(
    'cannot hold a query or a fragment: %s',
    (value) => {
      expect(problemsOf({ [name]: value })).toEqual([`${name} must not hold a query or a fragment`]);
    },
  );
});

describe('IDP_REDIRECT_URI', () => {
  it.each([
    'https://studio.test/callback',
    'https://studio.test',
    'HTTPS://Studio.Test:443/Callback/../x?a=b%20c',
    'studio.app:/callback',
  ])('is kept letter by letter: %s', (value) => {
    expect(settingsOf({ IDP_REDIRECT_URI: value }).identityProvider.redirectUri).toBe(value);
  });

  it.each(['/callback', 'studio.test/callback', 'https://', '?x'])('cannot be %s', (value) => {
    expect(problemsOf({ IDP_REDIRECT_URI: value })).toEqual([
      `IDP_REDIRECT_URI must be an absolute URI, not "${value}"`,
    ]);
  });

  it.each(['https://studio.test/callback#a', 'https://studio.test/#'])(
    'cannot hold a fragment: %s',
    (value) => {
      expect(problemsOf({ IDP_REDIRECT_URI: value })).toEqual(['IDP_REDIRECT_URI must not hold a fragment']);
    },
  );
});

describe('IDP_URL as the issuer', () => {
  it.each(['https://idp.test', 'https://idp.test/', 'https://IDP.test:443/tenant/'])(
    'is kept letter by letter: %s',
    (value) => {
      expect(settingsOf({ IDP_URL: value }).identityProvider.issuer).toBe(value);
    },
  );
});

describe('IDP_TOKEN_URL', () => {
  it.each(['https://idp.test', 'http://127.0.0.1:8080/token/', 'https://idp.test/v2/token?tenant=a%2Fb'])(
    'is kept as it is: %s',
    (value) => {
      expect(settingsOf({ IDP_TOKEN_URL: value }).identityProvider.tokenUrl).toBe(value);
    },
  );

  it.each([
    ['idp.test/token', 'must be an http or https address, not "idp.test/token"'],
    ['/oauth/token', 'must be an http or https address, not "/oauth/token"'],
    ['ftp://idp.test/token?key=secret', 'must be an http or https address, not "ftp://idp.test/token"'],
    ['https://user:secret@idp.test/token', 'must not hold a user name or a password'],
    ['https://idp.test/token#secret', 'must not hold a fragment'],
    ['https://idp.test/token?a#', 'must not hold a fragment'],
  ])('cannot be %s', (value, problem) => {
    expect(problemsOf({ IDP_TOKEN_URL: value })).toEqual([`IDP_TOKEN_URL ${problem}`]);
  });
});

describe('IDP_CLIENT_KEY', () => {
  const keyOf = (value: string) => {
    const { credential } = settingsOf({ IDP_CLIENT_KEY: value }).identityProvider;
    if (credential?.kind !== 'key') throw new Error('no key');
    return credential.key;
  };

  it.each(SIGNING_ALGORITHMS)('is a JWK or a PEM for %s, and is not shown', (alg) => {
    const { privateJwk, pem, secrets } = clientKeyPair(alg, 'a kid');
    const fromJwk = keyOf(privateJwk);
    const fromPem = keyOf(pem);
    expect(fromJwk.kid).toBe('a kid');
    expect(fromPem.kid).toBeUndefined();
    expect(fromPem.privateKey.equals(fromJwk.privateKey)).toBe(true);
    // Nothing in a PEM asks for PS256.
    if (alg !== 'PS256') expect(fromPem.parameters).toEqual(fromJwk.parameters);
    const shown = inspect([fromJwk, fromPem], { depth: 9 }) + JSON.stringify([fromJwk, fromPem]);
    for (const secret of secrets) expect(shown).not.toContain(secret);
  });

  it('signs with PS256 where the JWK says so, else an RSA key signs with RS256', () => {
    expect(keyOf(clientKeyPair('PS256').privateJwk).parameters.name).toBe('RSA-PSS');
    expect(keyOf(clientKeyPair('RS256').privateJwk).parameters.name).toBe('RSASSA-PKCS1-v1_5');
    expect(keyOf(clientKeyPair('PS256').pem).parameters.name).toBe('RSASSA-PKCS1-v1_5');
  });

  it('takes an Ed25519 JWK under its older name, EdDSA', () => {
    const jwk = { ...JSON.parse(clientKeyPair('Ed25519').privateJwk), alg: 'EdDSA' };
    expect(keyOf(JSON.stringify(jwk)).parameters).toEqual({ name: 'Ed25519' });
  });

  it('cannot be set together with IDP_CLIENT_SECRET', () => {
    const both = { IDP_CLIENT_SECRET: 'secret', IDP_CLIENT_KEY: CLIENT_KEY.privateJwk };
    expect(problemsOf(both)).toEqual(['IDP_CLIENT_SECRET and IDP_CLIENT_KEY must not both be set']);
  });
});

describe('ALLOWED_ORIGINS', () => {
  it.each([
    ['https://studio.test', ['https://studio.test']],
    ['http://localhost:5173', ['http://localhost:5173']],
    ['http://[::1]:5173', ['http://[::1]:5173']],
    ['https://a.test,https://b.test:8443', ['https://a.test', 'https://b.test:8443']],
    [' https://a.test , https://b.test ', ['https://a.test', 'https://b.test']],
    ['https://a.test,,https://b.test,', ['https://a.test', 'https://b.test']],
    ['https://a.test,https://a.test', ['https://a.test']],
    ['https://xn--caf-dma.test', ['https://xn--caf-dma.test']],
  ])('can be %s', (value, origins) => {
    expect([...settingsOf({ ALLOWED_ORIGINS: value }).allowedOrigins]).toEqual(origins);
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
  ])('cannot be %s', (value, meant) => {
    expect(problemsOf({ ALLOWED_ORIGINS: value })).toEqual([
      `ALLOWED_ORIGINS: "${value}" must be written as a browser sends it: ${meant}`,
    ]);
  });

  it.each([
    '*',
    'null',
    'studio.test',
    '//studio.test',
    'ftp://studio.test',
    'file://',
    'https://',
    'chrome-extension://a',
  ])('cannot be %s, which is no origin of a web app', (value) => {
    expect(problemsOf({ ALLOWED_ORIGINS: value })).toEqual([
      `ALLOWED_ORIGINS: "${value}" is not an origin like https://studio.example`,
    ]);
  });

  // A known defect: it is taken, and then allows nobody, because origins are compared letter by letter.
  it.each(['https://*.studio.test', 'http://*'])('cannot be a pattern: %s', (value) => {
    const problems = problemsOf({ ALLOWED_ORIGINS: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(`ALLOWED_ORIGINS: "${value}"`);
  });

  it.each([',', ' , ,'])('cannot be without any: "%s"', (value) => {
    expect(problemsOf({ ALLOWED_ORIGINS: value })).toEqual(['ALLOWED_ORIGINS must name at least one origin']);
  });

  it('is told of each entry that is wrong', () => {
    expect(problemsOf({ ALLOWED_ORIGINS: 'https://a.test/,https://b.test,*' })).toEqual([
      'ALLOWED_ORIGINS: "https://a.test/" must be written as a browser sends it: https://a.test',
      'ALLOWED_ORIGINS: "*" is not an origin like https://studio.example',
    ]);
  });
});

describe('a name that resembles a setting', () => {
  it.each([
    ['ALLOWED_ORIGIN', 'ALLOWED_ORIGINS'],
    ['ALLOWD_ORIGINS', 'ALLOWED_ORIGINS'],
    ['allowed_origins', 'ALLOWED_ORIGINS'],
    ['TIMEOUT_STREAM', 'TIMEOUT_STREAM_MS'],
    ['TIMEOUT_READ', 'TIMEOUT_READ_MS'],
    ['TIMEOUT_LOGOUT', 'TIMEOUT_LOGOUT_MS'],
    ['TIMEOUT_SIGNIN_MS', 'TIMEOUT_SIGN_IN_MS'],
    ['UPSTREAM_URI', 'UPSTREAM_URL'],
    ['UPSTREAMURL', 'UPSTREAM_URL'],
    ['IDP_URI', 'IDP_URL'],
    ['IDP_CLIENTID', 'IDP_CLIENT_ID'],
    ['IDP_REDIRECT_URL', 'IDP_REDIRECT_URI'],
    ['SERVICENAME', 'SERVICE_NAME'],
    ['UPSTREAM_SIGNIN_FIELD', 'UPSTREAM_SIGN_IN_FIELD'],
    ['port', 'PORT'],
    ['Host', 'HOST'],
  ])('is warned of: %s', (name, meant) => {
    expect(warningsOf({ [name]: 'x' })).toEqual([
      `${name} is not a setting of the gateway; did you mean ${meant}?`,
    ]);
  });

  it.each([
    ...[
      'HOME',
      'PATH',
      'HOSTNAME',
      'PWD',
      'OLDPWD',
      'USER',
      'LOGNAME',
      'SHELL',
      'SHLVL',
      'TERM',
      'LANG',
      'LC_ALL',
    ],
    ...['TZ', '_', 'MAIL', 'EDITOR', 'DISPLAY', 'POST', 'HOSTTYPE', 'CI', 'DEBUG', 'TMPDIR', 'NODE_OPTIONS'],
    ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'BUN_INSTALL', 'BUN_CONFIG_MAX_HTTP_REQUESTS', 'NODE_PATH'],
    ...['KUBERNETES_SERVICE_HOST', 'KUBERNETES_PORT', 'INVOCATION_ID', 'JOURNAL_STREAM', 'LISTEN_PID'],
    ...['npm_config_user_agent', 'npm_package_name', 'DATABASE_URL', 'GIT_AUTHOR_NAME', ''],
  ])('is not every name of the system: %s', (name) => {
    expect(warningsOf({ [name]: 'x' })).toEqual([]);
  });

  it('is no setting itself', () => {
    for (const [name, , , given] of OPTIONAL) expect(warningsOf({ [name]: given })).toEqual([]);
  });

  it('is not one that has no value', () => {
    expect(warningsOf({ ALLOWED_ORIGIN: undefined })).toEqual([]);
  });

  it('is warned of once each, when the settings are good and when they are not', () => {
    const slips = { ALLOWED_ORIGIN: 'x', TIMEOUT_STREAM: '1' };
    const warnings = [
      'ALLOWED_ORIGIN is not a setting of the gateway; did you mean ALLOWED_ORIGINS?',
      'TIMEOUT_STREAM is not a setting of the gateway; did you mean TIMEOUT_STREAM_MS?',
    ];
    expect(parseSettings({ ...REQUIRED, NODE_ENV: 'production', ...slips })).toMatchObject({
      ok: true,
      warnings,
    });
    expect(parseSettings(slips)).toMatchObject({ ok: false, warnings });
  });
});

const PEM = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const;

describe('settings that hold secrets', () => {
  it.each(['http://cache.test', 'cache.test:6379', 'redis', 'http://:secret@cache.test'])(
    'refuses the REDIS_URL %s without quoting it',
    (value) => {
      expect(problemsOf({ REDIS_URL: value })).toEqual([
        'REDIS_URL must be an address like redis://127.0.0.1:6379',
      ]);
    },
  );

  it.each([
    ['too short', Buffer.alloc(31).toString('base64url')],
    ['too long', Buffer.alloc(33).toString('base64url')],
    ['not base64url', Buffer.alloc(32, 255).toString('base64')],
    ['empty', ''],
  ])('refuses a cookie key that is %s, and says only which it is', (_, key) => {
    expect(problemsOf({ COOKIE_KEYS: `${KEYS},${key}` })).toEqual([
      'COOKIE_KEYS: key 3 must be 32 bytes in base64url',
    ]);
  });

  it.each([
    ['no key at all', 'secret'],
    ['cut off', CLIENT_KEY.pem.slice(0, -40)],
    ['without line ends', CLIENT_KEY.pem.replaceAll('\n', ' ')],
    ['broken JSON', CLIENT_KEY.privateJwk.slice(0, -1)],
    ['a public key', JSON.stringify(CLIENT_KEY.publicJwk)],
    ['a symmetric key', '{"kty":"oct","k":"secret"}'],
  ])('refuses an IDP_CLIENT_KEY that is %s without quoting it', (_, value) => {
    expect(problemsOf({ IDP_CLIENT_KEY: value })).toEqual([
      'IDP_CLIENT_KEY must be a private key: a JWK in JSON on one line, or PKCS#8 in PEM',
    ]);
  });

  it.each([
    ['of another algorithm', JSON.stringify({ ...JSON.parse(CLIENT_KEY.privateJwk), alg: 'RS256' })],
    ['of an unknown algorithm', JSON.stringify({ ...JSON.parse(CLIENT_KEY.privateJwk), alg: 'toString' })],
    ['too short', generateKeyPairSync('rsa', { modulusLength: 1024, ...PEM }).privateKey],
    ['for key agreement', String(generateKeyPairSync('x25519').privateKey.export(PEM.privateKeyEncoding))],
  ])('refuses an IDP_CLIENT_KEY that is %s without quoting it', (_, value) => {
    expect(problemsOf({ IDP_CLIENT_KEY: value })).toEqual([
      'IDP_CLIENT_KEY must be a key for ES256, ES384, ES512, Ed25519, RS256 or PS256 ' +
        '(RSA with 2048 bits or more), and its "alg", if it has one, must be that of the key',
    ]);
  });

  it('quotes no password of an address', () => {
    for (const scheme of ['http', 'ftp', 'htp']) {
      expect(problemsOf({ UPSTREAM_URL: `${scheme}://user:secret@upstream.test` }).join()).not.toContain(
        'secret',
      );
    }
  });
});

describe.each(['COOKIE_KEYS_ACCEPT_PLAIN', 'COOKIE_SECURE', 'SIGN_OUT_REVOKES'])('%s', (name) => {
  it.each(['yes', '1', 'TRUE'])('must be true or false, not %s', (value) => {
    expect(problemsOf({ [name]: value })).toEqual([`${name} must be true or false, not "${value}"`]);
  });
});

describe('COOKIE_SECURE', () => {
  it.each([{}, { COOKIE_SECURE: 'false' }, { COOKIE_SECURE: 'true' }])(
    'changes nothing in production, where the cookies are Secure: %j',
    (environment) => {
      expect(settingsOf({ ...environment, NODE_ENV: 'production' }).cookies.secure).toBe(true);
    },
  );
});

describe('COOKIE_SAME_SITE', () => {
  it.each(['none', 'Strict', 'LAX', 'true'])('cannot be %s', (value) => {
    expect(problemsOf({ COOKIE_SAME_SITE: value })).toEqual([
      `COOKIE_SAME_SITE must be lax or strict, not "${value}"`,
    ]);
  });
});

describe('COOKIE_PREFIX', () => {
  it('is none unless it is set', () => {
    for (const environment of [{}, { COOKIE_PREFIX: '' }, { COOKIE_PREFIX: ' ' }]) {
      expect(settingsOf(environment).cookies.prefix).toBe('');
    }
  });

  it.each(['__Host-', '__Host-Http-'] as const)('can be %s where the cookies are Secure', (prefix) => {
    for (const secure of [{ NODE_ENV: 'production' }, { COOKIE_SECURE: 'true' }]) {
      expect(settingsOf({ COOKIE_PREFIX: prefix, ...secure }).cookies).toMatchObject({
        prefix,
        secure: true,
      });
    }
    expect(problemsOf({ COOKIE_PREFIX: prefix })).toEqual([
      'COOKIE_PREFIX needs Secure cookies: set NODE_ENV=production or COOKIE_SECURE=true',
    ]);
  });

  it.each(['__Secure-', '__Http-', '__host-', '__Host', '__Host-Http-x', 'true'])('cannot be %s', (value) => {
    expect(problemsOf({ COOKIE_PREFIX: value, COOKIE_SECURE: 'true' })).toEqual([
      `COOKIE_PREFIX must be __Host- or __Host-Http-, not "${value}"`,
    ]);
  });
});

describe('NODE_TLS_REJECT_UNAUTHORIZED', () => {
  const UNCHECKED = 'NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates of other servers are not checked';

  it('of 0 stops the start in production, and is warned of elsewhere', () => {
    const environment = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    expect(problemsOf({ ...environment, NODE_ENV: 'production' })).toEqual([
      `${UNCHECKED}, which production does not allow`,
    ]);
    const { ok, warnings } = parseSettings({
      ...REQUIRED,
      ...environment,
      ALLOWED_ORIGINS: 'http://localhost:4180',
    });
    expect([ok, warnings]).toEqual([true, [UNCHECKED]]);
  });

  it.each(['1', '', 'false', '00', ' 0'])(
    'of "%s" changes nothing for Bun, and is not looked at',
    (value) => {
      expect(warningsOf({ NODE_TLS_REJECT_UNAUTHORIZED: value })).toEqual([]);
      expect(problemsOf({ NODE_TLS_REJECT_UNAUTHORIZED: value, NODE_ENV: 'production' })).toEqual([]);
    },
  );
});

describe('an https origin', () => {
  it('is warned of outside production, where the cookies are not Secure', () => {
    expect(warningsOf({ NODE_ENV: 'prod' })).toEqual([
      'NODE_ENV is not production: the cookies are not Secure, although an allowed origin is https; ' +
        'COOKIE_SECURE=true makes them so',
    ]);
    expect(warningsOf({ NODE_ENV: 'prod', COOKIE_SECURE: 'true' })).toEqual([]);
    expect(warningsOf({ NODE_ENV: 'prod', ALLOWED_ORIGINS: 'http://localhost:4180' })).toEqual([]);
    expect(warningsOf({ NODE_ENV: 'production' })).toEqual([]);
  });
});
