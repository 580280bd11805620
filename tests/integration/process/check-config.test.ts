import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { checkConfig, SETTINGS, start, startInVain } from '../../support/bun-run-start.ts';
import { clientKeyPair } from '../../support/client-keys.ts';
import { freePorts } from '../../support/free-ports.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { startTestSandbox } from '../../support/sandbox-account.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';

const WOULD_START = 'ok: the gateway would start with these settings';
const PASSWORD = 'hush-redis';
const CLIENT_SECRET = 'hush-hush-hush-hush-hush-hush-hush';
const COOKIE_KEY = Buffer.alloc(32, 7).toString('base64url');
const KEY_PAIR = clientKeyPair('ES256');
const SECRETS = [PASSWORD, CLIENT_SECRET, COOKIE_KEY, ...KEY_PAIR.secrets];
/** What a user of Redis has to be allowed, as the report says it. */
const NEEDED = '+eval +time +get +set +del';

/** Runs it, and makes sure that it prints no secret. Warnings about the limits of this machine are left out. */
async function check(settings: Record<string, string>, ...options: string[]) {
  const ended = await checkConfig({ COOKIE_KEYS: COOKIE_KEY, ...settings }, ...options);
  for (const secret of SECRETS) expect(ended.output + ended.errors).not.toContain(secret);
  expect(ended.errors).toBe('');
  const lines = ended.output.trimEnd().split('\n');
  return { status: ended.status, lines: lines.filter((line) => !line.includes('MAX_IN_FLIGHT_REQUESTS')) };
}

/** Asserts the only line of the report that is not `ok`, or any line that is, and the exit status. */
function expectLine({ status, lines }: Awaited<ReturnType<typeof check>>, line: RegExp): void {
  const notOk = lines.filter((each) => !each.startsWith('ok: '));
  if (line.source.startsWith('^ok')) {
    expect(notOk).toEqual([]);
    expect(lines).toEqual(expect.arrayContaining([expect.stringMatching(line)]));
  } else expect(notOk).toEqual([expect.stringMatching(line)]);
  expect(status).toBe(line.source.startsWith('^error') ? 1 : 0);
}

describe('bun run check-config', () => {
  it('accepts what would start, without a connection to any server', async () => {
    const settings = { REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:1`, IDP_CLIENT_SECRET: CLIENT_SECRET };
    expect(await check(settings)).toEqual({ status: 0, lines: [WOULD_START] });
  });

  it('has the warnings of the start, and exits with 0', async () => {
    const settings = {
      TRUSTED_PROXIES: '127.0.0.1',
      BUN_CONFIG_MAX_HTTP_REQUESTS: '300',
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
    };
    await using gateway = await start(settings);
    const { status, output } = await checkConfig(settings);
    const warnings = gateway.lines.flatMap((line) =>
      Object(line).level === 'warn' ? [`warning: ${Object(line).msg}`] : [],
    );
    expect(warnings.length).toBeGreaterThan(2);
    expect([status, output.trimEnd().split('\n')]).toEqual([0, [...warnings, WOULD_START]]);
  });

  it('has the problems of a start in vain, and exits with 1', async () => {
    const settings = {
      ...SETTINGS,
      PORT: 'none',
      TRUSTED_PROXIES: '127.0.0.1',
      COOKIE_KEYS_FILE: '/none',
      IDP_URL: '',
    };
    const { errors } = await startInVain(settings);
    const { status, output } = await checkConfig(settings, '--connect');
    const said = errors.split('\n').filter((line) => /^(?:error|warning): /.test(line));
    expect(said.length).toBeGreaterThan(3);
    expect([status, output.trimEnd().split('\n')]).toEqual([1, said]);
  });

  it('refuses an option that it does not know', async () => {
    const lines = ['error: --conect is not an option; the only one is --connect'];
    expect(await check({}, '--conect')).toEqual({ status: 1, lines });
  });
});

describe('bun run check-config --connect', () => {
  let provider: Awaited<ReturnType<typeof startTestSandbox>>;
  let upstream: ScriptedUpstream;
  beforeAll(async () => {
    provider = await startTestSandbox();
    upstream = new ScriptedUpstream().on('GET /v1/models', () => new Response('', { status: 401 }));
  });
  afterAll(() => Promise.all([provider.stop(), upstream.stop()]));

  /** All is well, but for the settings given. */
  function connect(settings: Record<string, string> = {}) {
    const addresses = { UPSTREAM_URL: upstream.upstreamUrl, IDP_URL: provider.identityProviderUrl };
    return check({ ...addresses, ...settings }, '--connect');
  }

  it('says that all is well', async () => {
    const { status, lines } = await connect();
    const issuer = provider.identityProviderUrl;
    expect(lines.map((line) => line.replace(/\d+ s (?:ahead of|behind)/, '0 s from'))).toEqual([
      WOULD_START,
      `ok: UPSTREAM_URL: ${upstream.upstreamUrl} responds with 401 to GET /v1/models without a token`,
      `ok: IDP_CLIENT_ID: the token endpoint ${issuer}/oauth/token accepts the client`,
      'ok: IDP_URL: the metadata of the identity provider agrees with the settings',
      'ok: clock: this machine is 0 s from the server of UPSTREAM_URL',
      'ok: clock: this machine is 0 s from the server of IDP_URL',
      'ok: PORT: port 0 of 127.0.0.1 is free',
    ]);
    expect(status).toBe(0);
    expect(upstream.last('GET /v1/models').headers.has('authorization')).toBe(false);
  });

  it.each([
    [
      'a client that the provider does not know',
      { IDP_CLIENT_ID: 'none' },
      /^error: .* does not accept the client: compare IDP_CLIENT_ID, and/,
    ],
    [
      'a secret for a public client',
      { IDP_CLIENT_SECRET: CLIENT_SECRET },
      /^error: .* does not accept .* IDP_CLIENT_SECRET, and/,
    ],
    [
      'a key for a public client',
      { IDP_CLIENT_KEY: KEY_PAIR.privateJwk },
      /^error: .* does not accept .* key of IDP_CLIENT_KEY and/,
    ],
    [
      'a provider that is down',
      { IDP_URL: 'http://127.0.0.1:1' },
      /^error: IDP_URL: .* does not accept connections.*ECONNREFUSED/,
    ],
    [
      'an upstream that is down',
      { UPSTREAM_URL: 'http://127.0.0.1:1' },
      /^error: UPSTREAM_URL: .* does not accept connections/,
    ],
    [
      'an upstream that no DNS knows',
      { UPSTREAM_URL: 'http://gateway.invalid' },
      /^error: UPSTREAM_URL: .* host name that is not found/,
    ],
    [
      'a host on which it cannot listen',
      { HOST: '192.0.2.1', PORT: '4175' },
      /^error: cannot listen on 192.0.2.1:4175/,
    ],
  ])('finds %s', async (_, settings: Record<string, string>, line) => {
    expectLine(await connect(settings), line);
  });

  it.each([
    [503, /^error: UPSTREAM_URL: .* responds with 503 .*: see its log/],
    [301, /^warning: UPSTREAM_URL: .* responds with 301 .* follows no redirect/],
    [404, /^warning: UPSTREAM_URL: .* responds with 404 .* is the path of the address right/],
    [200, /^ok: UPSTREAM_URL: .* responds with 200/],
  ])('judges an upstream that responds with %d', async (status, line) => {
    using server = listening(() => new Response('', { status, headers: { location: '/elsewhere' } }));
    expectLine(await connect({ UPSTREAM_URL: server.url }), line);
  });

  describeWith([program('openssl')], 'with an upstream that speaks TLS', () => {
    it.each([
      [
        'that has expired',
        -1,
        'localhost',
        /^error: UPSTREAM_URL: .* that has expired: renew it \(CERT_HAS_EXPIRED\)/,
        true,
      ],
      ['for another name', 1, '127.0.0.2', /^error: UPSTREAM_URL: .* for another host name/, true],
      ['that nobody has signed', 1, 'localhost', /^error: UPSTREAM_URL: .* in NODE_EXTRA_CA_CERTS/, false],
    ] as const)('finds a certificate %s', async (_, days, host, line, isTrusted) => {
      const { folder, tls } = await certificate(days);
      const server = Bun.serve({ port: 0, hostname: '0.0.0.0', tls, fetch: () => new Response() });
      const found = await connect({
        UPSTREAM_URL: `https://${host}:${server.port}`,
        ...(isTrusted ? { NODE_EXTRA_CA_CERTS: `${folder}/certificate` } : {}),
      });
      await Promise.all([server.stop(true), rm(folder, { recursive: true })]);
      expectLine(found, line);
    });
  });

  it('waits for 5 seconds at most, for all servers at once', async () => {
    const silent = net.createServer().listen(0, '127.0.0.1');
    const { port } = Object(silent.address());
    const address = `http://127.0.0.1:${port}`;
    const startedAt = performance.now();
    const { status, lines } = await connect({
      UPSTREAM_URL: address,
      IDP_URL: address,
      REDIS_URL: `redis://127.0.0.1:${port}`,
    });
    expect(performance.now() - startedAt).toBeLessThan(9_000);
    silent.close();
    expect(lines.filter((line) => /^error: .* does not respond[^()]*$/.test(line))).toHaveLength(3);
    expect(status).toBe(1);
  });

  it('prints no more of a server that is no Redis than one word', async () => {
    const stranger = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', () => socket.end(`-${'A'.repeat(10_000)}\u001b[2J\r\n`));
    });
    stranger.listen(0, '127.0.0.1');
    const { port } = Object(stranger.address());
    const found = await connect({ REDIS_URL: `redis://127.0.0.1:${port}` });
    stranger.close();
    expectLine(found, /^error: REDIS_URL: redis:\/\/[\d.:]+ cannot be reached \(no Redis\)$/);
  });

  it.each([
    [
      { token_endpoint_auth_method: 'client_secret_basic' as const, client_secret: CLIENT_SECRET },
      { IDP_CLIENT_SECRET: CLIENT_SECRET },
      { IDP_CLIENT_SECRET: 'wrong' },
    ],
    [
      { token_endpoint_auth_method: 'private_key_jwt' as const, jwks: { keys: [KEY_PAIR.publicJwk] } },
      { IDP_CLIENT_KEY: KEY_PAIR.privateJwk },
      { IDP_CLIENT_KEY: clientKeyPair('ES256').privateJwk },
    ],
  ])(
    'tells the credential of a confidential client from another: %j',
    async (credentials, right: Record<string, string>, wrong: Record<string, string>) => {
      const sandbox = await startTestSandbox({ credentials });
      const IDP_URL = sandbox.identityProviderUrl;
      const found = await Promise.all([connect({ IDP_URL, ...right }), connect({ IDP_URL, ...wrong })]);
      await sandbox.stop();
      expectLine(found[0], /^ok: .* accepts the client$/);
      expectLine(
        found[1],
        /^error: .* does not accept the client: .* register it for (client_secret_basic|private_key_jwt)$/,
      );
    },
  );

  it.each([
    ['no OAuth error', {}, 404, /^error: IDP_TOKEN_URL: .* responds with 404 .* is the address right/],
    ['a failure', {}, 503, /^error: IDP_CLIENT_ID: .* responds with 503 .* so it is not known/],
    [
      'a failure',
      { error: 'invalid_grant' },
      503,
      /^error: .* responds with 503 and invalid_grant .* is not known/,
    ],
    [
      'invalid_request',
      { error: 'invalid_request' },
      400,
      /^warning: .* responds with 400 and invalid_request .* so it is not known/,
    ],
    [
      'unauthorized_client',
      { error: 'unauthorized_client' },
      400,
      /^error: .* does not let the client use authorization codes/,
    ],
    [
      'a token',
      { access_token: 'token' },
      200,
      /^error: IDP_TOKEN_URL: .* responds with 200 to a code that does not exist/,
    ],
  ])('judges a token endpoint that responds with %s', async (_, body, status, line) => {
    using server = listening(() => Response.json(body, { status }));
    const found = await connect({ IDP_URL: server.url });
    expectLine(found, line);
    expect(found.lines.join()).not.toContain('metadata');
  });

  it.each([
    [
      'another token endpoint',
      { token_endpoint: `https://id.example/token?key=${PASSWORD}` },
      /^warning: IDP_TOKEN_URL: .* names the token endpoint https:\/\/id.example\/token;/,
    ],
    [
      'another issuer',
      { issuer: 'https://id.example/' },
      /^warning: IDP_URL: the identity provider calls itself https:\/\/id.example\/; write it exactly like that/,
    ],
    [
      'no S256',
      { code_challenge_methods_supported: ['plain'] },
      /^warning: IDP_URL: .* does not offer PKCE with S256/,
    ],
    [
      'no private_key_jwt',
      { token_endpoint_auth_methods_supported: ['none'] },
      /^warning: IDP_CLIENT_KEY: .* does not offer private_key_jwt/,
    ],
    [
      'an endpoint that is no address',
      { token_endpoint: '\u001b[2J' },
      /^warning: IDP_TOKEN_URL: .* something that is not an address/,
    ],
    ['all of that', {}, /^ok: IDP_URL: the metadata/],
  ])('judges metadata with %s, at either of its places', async (_, difference, line) => {
    let places = [
      '/tenant/.well-known/openid-configuration',
      '/.well-known/oauth-authorization-server/tenant',
    ];
    using server = listening(({ url }) => {
      const { origin, pathname } = new URL(url);
      const [issuer, token_endpoint] = [`${origin}/tenant`, `${origin}/tenant/oauth/token`];
      if (places.includes(pathname)) return Response.json({ issuer, token_endpoint, ...difference });
      return Response.json({ error: 'invalid_grant' }, { status: pathname.endsWith('token') ? 400 : 404 });
    });
    const settings = { IDP_URL: `${server.url}/tenant`, IDP_CLIENT_KEY: KEY_PAIR.privateJwk };
    for (const place of places) {
      places = [place];
      expectLine(await connect(settings), line);
    }
  });

  it.each([
    [40, {}, /^error: clock: this machine is \d+ s behind the server of UPSTREAM_URL: set it right/],
    [-40, {}, /^error: clock: this machine is \d+ s ahead of the server of UPSTREAM_URL: set it right/],
    [20, {}, /^ok: clock: this machine is \d+ s behind the server of UPSTREAM_URL$/],
    // From a cache, with the time at which it was stored.
    [-40, { age: '40' }, /^ok: clock: this machine is [01] s (ahead of|behind) the server of IDP_URL$/],
  ])(
    'compares the clock with that of a server which is %d s ahead %j',
    async (aheadSeconds, headers, line) => {
      using server = listening(() => {
        const date = new Date(Date.now() + aheadSeconds * 1000).toUTCString();
        return new Response('', { headers: { date, ...headers } });
      });
      expectLine(await connect({ UPSTREAM_URL: server.url }), line);
    },
  );

  it('tells a gateway that listens already from a stranger', async () => {
    const port = await freePorts(2);
    const ports = { PORT: String(port), METRICS_PORT: String(port + 1) };
    await using _ = await start(ports);
    const found = await connect(ports);
    expectLine(found, new RegExp(`^ok: PORT: a gateway listens on port ${port} already`));
    expectLine(found, new RegExp(`^ok: METRICS_PORT: a gateway listens on port ${port + 1} already`));
    using stranger = listening(() => Response.json({ status: 'ok' }));
    expectLine(await connect({ PORT: new URL(stranger.url).port }), /^error: port \d+ is taken \(PORT\)/);
  });

  describeWith([REDIS_SERVER], 'with Redis', () => {
    it.each([
      ['that works', [], '', /^ok: REDIS_URL: redis:\/\/[\d.:]+ works; its version is \d+\.\d+\.\d+$/],
      [
        'with a password',
        [`CONFIG SET requirepass ${PASSWORD}`],
        `:${PASSWORD}@`,
        /^ok: REDIS_URL: redis:\/\/[\d.:]+ works/,
      ],
      [
        'whose password is missing',
        [`CONFIG SET requirepass ${PASSWORD}`],
        '',
        /^error: REDIS_URL: redis:\/\/[\d.:]+ does not accept the user name or the password, or needs one/,
      ],
      [
        'whose password is another',
        ['CONFIG SET requirepass other'],
        `:${PASSWORD}@`,
        /^error: REDIS_URL: redis:\/\/[\d.:]+ does not accept the user name or the password, or needs one/,
      ],
      [
        'whose user may do what is needed',
        [`ACL SETUSER gateway on >${PASSWORD} ~music-gateway:* ${NEEDED}`],
        `gateway:${PASSWORD}@`,
        /^ok: REDIS_URL: .* works$/,
      ],
      [
        'whose user may not write',
        [`ACL SETUSER gateway on >${PASSWORD} ~music-gateway:* ${NEEDED} -set`],
        `gateway:${PASSWORD}@`,
        new RegExp(`^error: REDIS_URL: .* ${RegExp.escape(NEEDED)}`),
      ],
      ...['-time', '-get', '-del'].map(
        (denied) =>
          [
            `whose user has ${denied}`,
            [`ACL SETUSER gateway on >${PASSWORD} ~music-gateway:* ${NEEDED} ${denied}`],
            `gateway:${PASSWORD}@`,
            new RegExp(`^error: REDIS_URL: .* ${RegExp.escape(NEEDED)}`),
          ] as const,
      ),
      [
        'whose user may not run scripts',
        [`ACL SETUSER gateway on >${PASSWORD} ~music-gateway:* +get`],
        `gateway:${PASSWORD}@`,
        new RegExp(`^error: REDIS_URL: .* ${RegExp.escape(NEEDED)}`),
      ],
      [
        'that may delete records',
        ['CONFIG SET maxmemory-policy allkeys-lru'],
        '',
        /^warning: REDIS_URL: .* allkeys-lru, .* set it to noeviction/,
      ],
      [
        'that refuses a script',
        ['LPUSH music-gateway:check-config x'],
        '',
        /^error: REDIS_URL: .* refuses what the gateway needs, .* \(WRONGTYPE\)/,
      ],
      ['that is full', ['CONFIG SET maxmemory 1'], '', /^error: REDIS_URL: redis:\/\/[\d.:]+ is full/],
      [
        'that is a replica',
        ['REPLICAOF 127.0.0.1 1'],
        '',
        /^error: REDIS_URL: redis:\/\/[\d.:]+ is a replica/,
      ],
    ] as const)('judges one %s', async (_, commands, user, line) => {
      await using redis = await startRedis();
      using admin = new RedisAdmin(redis.url);
      for (const command of commands) {
        const [name = '', ...parameters] = command.split(' ');
        await admin.send(name, parameters);
      }
      expectLine(await connect({ REDIS_URL: redis.url.replace('//', `//${user}`) }), line);
    });

    it('leaves no record behind', async () => {
      await using redis = await startRedis();
      using admin = new RedisAdmin(redis.url);
      await connect({ REDIS_URL: redis.url });
      expect(await admin.keys('*')).toEqual([]);
      expect(await admin.send('INFO', ['commandstats'])).toMatch(/cmdstat_set:calls=[1-9]/);
    });

    it.each([
      ['does not speak TLS', 'rediss://127.0.0.1:PORT', /^error: REDIS_URL: rediss:.* with or without TLS/],
      [
        'does not run',
        `redis://:${PASSWORD}@127.0.0.1:1`,
        /^error: REDIS_URL: redis:\/\/127.0.0.1:1 does not accept connections/,
      ],
      [
        'has no socket',
        'redis+unix:///run/none.sock',
        /^error: REDIS_URL: redis\+unix:\/\/\/run\/none.sock does not exist/,
      ],
      [
        'no DNS knows',
        `redis://:${PASSWORD}@redis.invalid`,
        /^error: REDIS_URL: redis:\/\/redis.invalid has a host name that is not found/,
      ],
    ])('finds one that %s', async (_, url, line) => {
      await using redis = await startRedis();
      expectLine(await connect({ REDIS_URL: url.replace('PORT', String(redis.port)) }), line);
    });
  });
});

function listening(fetch: (request: Request) => Response) {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch });
  return { url: server.url.origin, [Symbol.dispose]: () => void server.stop(true) };
}

/** A certificate for localhost, signed by itself, that is valid for so many days. */
async function certificate(days: number) {
  const folder = await mkdtemp(`${tmpdir()}/certificate-`);
  const [cert, key, request] = [`${folder}/certificate`, `${folder}/key`, `${folder}/request`];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const algorithm = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const from = ['-in', request, '-key', key, '-copy_extensions', 'copyall'];
  await runToEnd(['openssl', 'req', ...algorithm, ...subject, '-keyout', key, '-out', request]);
  await runToEnd(['openssl', 'x509', '-req', ...from, '-days', String(days), '-out', cert]);
  return { folder, tls: { cert: await Bun.file(cert).text(), key: await Bun.file(key).text() } };
}
