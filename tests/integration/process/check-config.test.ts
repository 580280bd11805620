import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import net from 'node:net';
import { checkClient } from '../../../src/check/client-check.ts';
import { clockFindings } from '../../../src/check/clock-check.ts';
import type { Finding } from '../../../src/check/finding.ts';
import { probe } from '../../../src/check/http-probe.ts';
import { checkPorts } from '../../../src/check/port-check.ts';
import { metadataFindings, probeMetadata } from '../../../src/check/provider-metadata.ts';
import { checkRedis } from '../../../src/check/redis-check.ts';
import { UPSTREAM_PROBE_PATH, upstreamFinding } from '../../../src/check/upstream-check.ts';
import { listenOrExplain } from '../../../src/gateway/http/listen.ts';
import { loadSettings } from '../../../src/gateway/settings/settings.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { clientKeyPair } from '../../support/client-keys.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { startTestSandbox } from '../../support/sandbox-account.ts';
import { startWorld } from '../../support/world.ts';
import { checkConfig, SETTINGS } from './bun-run-start.ts';

const WOULD_START = 'ok: the gateway would start with these settings';
const NOWHERE = 'http://127.0.0.1:1';
const PASSWORD = 'hush-redis';
const CLIENT_SECRET = 'hush-hush-hush-hush-hush-hush-hush';
const KEY_PAIR = clientKeyPair('ES256');
const SECRETS = [PASSWORD, CLIENT_SECRET, ...KEY_PAIR.secrets];
const NEEDED = '+eval +time +get +set +del';
/** A key, and for localhost a certificate that expired in 2020 and one that is valid until 2120. */
const CERTIFICATES = new URL('certificates.pem', import.meta.url).pathname;
const [KEY = '', EXPIRED = '', VALID = ''] = (await Bun.file(CERTIFICATES).text()).split(
  /(?<=END .*-----\n)/,
);

/** The lines of the report, none of which may contain a secret. */
function shown(findings: readonly Finding[]): string[] {
  const lines = findings.map(({ level, text }) => `${level}: ${text}`);
  for (const secret of SECRETS) expect(lines.join('\n')).not.toContain(secret);
  return lines;
}

/** Expects one line, or one beside those that are ok. */
function expectLine(findings: readonly Finding[], line: RegExp): void {
  const lines = shown(findings);
  const expected = line.source.startsWith('^ok') ? lines : lines.filter((each) => !each.startsWith('ok: '));
  expect(expected).toEqual([expect.stringMatching(line)]);
}

async function settingsOf(environment: Readonly<Record<string, string>>) {
  const outcome = await loadSettings({ ...SETTINGS, ...environment });
  if (!outcome.ok) throw new Error(outcome.problems.join('\n'));
  return outcome.settings;
}

function listening(fetch: (request: Request) => Response, tls?: Bun.TLSOptions) {
  const server = Bun.serve({ port: 0, hostname: '0.0.0.0', fetch, ...(tls && { tls }) });
  const url = `http${tls ? 's' : ''}://127.0.0.1:${server.port}`;
  return { url, port: server.port, [Symbol.dispose]: () => void server.stop(true) };
}

let provider: Awaited<ReturnType<typeof startTestSandbox>>;
beforeAll(async () => {
  provider = await startTestSandbox();
});
afterAll(() => provider.stop());

describe('bun run check-config', () => {
  /** Warnings about the limits of this machine are left out. */
  async function run(settings: Record<string, string>, ...options: string[]) {
    const { status, output, errors } = await checkConfig(settings, ...options);
    for (const secret of SECRETS) expect(output + errors).not.toContain(secret);
    expect(errors).toBe('');
    const lines = output.trimEnd().split('\n');
    return { status, lines: lines.filter((line) => !line.includes('MAX_IN_FLIGHT_REQUESTS')) };
  }

  it('accepts what would start, without a connection to any server', async () => {
    const settings = { REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:1`, IDP_CLIENT_SECRET: CLIENT_SECRET };
    expect(await run(settings)).toEqual({ status: 0, lines: [WOULD_START] });
  });

  it('refuses an option that it does not know', async () => {
    const lines = ['error: --conect is not an option; the only one is --connect'];
    expect(await run({}, '--conect')).toEqual({ status: 1, lines });
  });

  it('asks every server with --connect, and says that all is well', async () => {
    const asked: Request[] = [];
    using upstream = listening((request) => {
      asked.push(request);
      return new Response('', { status: 401 });
    });
    const issuer = provider.identityProviderUrl;
    const { status, lines } = await run({ UPSTREAM_URL: upstream.url, IDP_URL: issuer }, '--connect');
    expect(lines.map((line) => line.replace(/\d+ s (?:ahead of|behind)/, '0 s from'))).toEqual([
      WOULD_START,
      `ok: UPSTREAM_URL: ${upstream.url} responds with 401 to GET /v1/models without a token`,
      `ok: IDP_CLIENT_ID: the token endpoint ${issuer}/oauth/token accepts the client`,
      'ok: IDP_URL: the metadata of the identity provider agrees with the settings',
      'ok: clock: this machine is 0 s from the server of UPSTREAM_URL',
      'ok: clock: this machine is 0 s from the server of IDP_URL',
      'ok: PORT: port 0 of 127.0.0.1 is free',
    ]);
    expect(status).toBe(0);
    expect(asked.map(({ headers }) => headers.has('authorization'))).toEqual([false]);
  });

  it('waits for 5 seconds at most, for all servers at once', async () => {
    let connections = 0;
    const atFirstEnd = Promise.withResolvers<number>();
    const silent = net.createServer((socket) => {
      connections++;
      socket.on('error', () => {}).on('close', () => atFirstEnd.resolve(connections));
    });
    silent.listen(0, '127.0.0.1');
    const { port } = Object(silent.address());
    const address = `http://127.0.0.1:${port}`;
    const addresses = { UPSTREAM_URL: address, IDP_URL: address, REDIS_URL: `redis://127.0.0.1:${port}` };
    const { status, lines } = await run(addresses, '--connect');
    silent.close();
    expect(lines.filter((line) => /^error: .* does not respond within 5 seconds/.test(line))).toHaveLength(2);
    expect(lines).toContainEqual(expect.stringMatching(/^error: REDIS_URL: .* with or without TLS/));
    expect(status).toBe(1);
    // The upstream, the metadata in two places, the token endpoint and Redis.
    expect(await atFirstEnd.promise).toBe(5);
  });

  it('finds a certificate that has expired, and one for another name', async () => {
    using expired = listening(() => new Response(), { key: KEY, cert: EXPIRED });
    using valid = listening(() => new Response(), { key: KEY, cert: VALID });
    const addresses = { UPSTREAM_URL: `https://localhost:${expired.port}`, IDP_URL: valid.url };
    const { lines } = await run({ ...addresses, NODE_EXTRA_CA_CERTS: CERTIFICATES }, '--connect');
    expect(lines.filter((line) => line.startsWith('error: '))).toEqual([
      expect.stringMatching(/^error: UPSTREAM_URL: .* that has expired: renew it \(CERT_HAS_EXPIRED\)/),
      expect.stringMatching(/^error: IDP_URL: .* for another host name/),
    ]);
  });
});

describe('the check of the upstream', () => {
  const found = async (url: string) => [
    upstreamFinding(url, await probe('models', url + UPSTREAM_PROBE_PATH)),
  ];

  it.each([
    [NOWHERE, /^error: UPSTREAM_URL: .* does not accept connections/],
    ['http://gateway.invalid', /^error: UPSTREAM_URL: .* host name that is not found/],
  ])('finds that nothing responds at %s', async (url, line) => {
    expectLine(await found(url), line);
  });

  it('finds a certificate that nobody has signed', async () => {
    using server = listening(() => new Response(), { key: KEY, cert: VALID });
    const line = /^error: UPSTREAM_URL: .* in NODE_EXTRA_CA_CERTS/;
    expectLine(await found(server.url.replace('127.0.0.1', 'localhost')), line);
  });

  it.each([
    [503, /^error: UPSTREAM_URL: .* responds with 503 .*: see its log/],
    [301, /^warning: UPSTREAM_URL: .* responds with 301 .* follows no redirect/],
    [404, /^warning: UPSTREAM_URL: .* responds with 404 .* is the path of the address right/],
    [200, /^ok: UPSTREAM_URL: .* responds with 200/],
  ])('judges the status %d', async (status, line) => {
    using server = listening(() => new Response('', { status, headers: { location: '/elsewhere' } }));
    expectLine(await found(server.url), line);
  });
});

describe('the check of the client', () => {
  const found = async (environment: Record<string, string>) => {
    const { identityProvider } = await settingsOf({ IDP_URL: provider.identityProviderUrl, ...environment });
    return [await checkClient(identityProvider)];
  };

  it.each([
    ['IDP_CLIENT_ID', 'none', /^error: .* does not accept the client: compare IDP_CLIENT_ID, and/],
    ['IDP_CLIENT_SECRET', CLIENT_SECRET, /^error: .* does not accept .* IDP_CLIENT_SECRET, and/],
    ['IDP_CLIENT_KEY', KEY_PAIR.privateJwk, /^error: .* does not accept .* key of IDP_CLIENT_KEY and/],
    ['IDP_URL', NOWHERE, /^error: IDP_URL: .* does not accept connections.*ECONNREFUSED/],
  ])('finds an %s that is wrong', async (name, value, line) => {
    expectLine(await found({ [name]: value }), line);
  });

  const OTHER_KEY = clientKeyPair('ES256').privateJwk;
  const JWKS = { keys: [KEY_PAIR.publicJwk] };
  it.each([
    ['client_secret_basic', 'IDP_CLIENT_SECRET', CLIENT_SECRET, 'wrong', { client_secret: CLIENT_SECRET }],
    ['private_key_jwt', 'IDP_CLIENT_KEY', KEY_PAIR.privateJwk, OTHER_KEY, { jwks: JWKS }],
  ] as const)(
    'tells the credential of a client with %s from another',
    async (method, name, right, ...rest) => {
      const [wrong, more] = rest;
      const credentials = { token_endpoint_auth_method: method, ...more };
      const { identityProviderUrl: IDP_URL, stop } = await startTestSandbox({ credentials });
      const own = await found({ IDP_URL, [name]: right });
      const another = await found({ IDP_URL, [name]: wrong });
      await stop();
      expectLine(own, /^ok: .* accepts the client$/);
      expectLine(another, new RegExp(`^error: .* does not accept the client: .* register it for ${method}$`));
    },
  );

  it.each([
    [404, {}, /^error: IDP_TOKEN_URL: .* responds with 404 .* is the address right/],
    [503, {}, /^error: IDP_CLIENT_ID: .* responds with 503 .* so it is not known/],
    [503, { error: 'invalid_grant' }, /^error: .* responds with 503 and invalid_grant .* is not known/],
    [400, { error: 'invalid_request' }, /^warning: .* 400 and invalid_request .* so it is not known/],
    [400, { error: 'unauthorized_client' }, /^error: .* does not let the client use authorization codes/],
    [200, { access_token: 'token' }, /^error: IDP_TOKEN_URL: .* 200 to a code that does not exist/],
  ])('judges a token endpoint that responds with %d %j', async (status, body, line) => {
    using server = listening(() => Response.json(body, { status }));
    expectLine(await found({ IDP_URL: server.url }), line);
  });
});

describe('the check of the metadata', () => {
  it('finds nothing where there are none', async () => {
    using server = listening(() => Response.json({ error: 'invalid_grant' }));
    const { identityProvider } = await settingsOf({ IDP_URL: server.url });
    expect(metadataFindings(identityProvider, await probeMetadata(server.url))).toEqual([]);
  });

  const PLACES = [
    '/tenant/.well-known/openid-configuration',
    '/.well-known/oauth-authorization-server/tenant',
  ];
  const ENDPOINT = { token_endpoint: `https://id.example/token?key=${PASSWORD}` };
  it.each([
    [ENDPOINT, /^warning: IDP_TOKEN_URL: .* names the token endpoint https:\/\/id.example\/token;/],
    [{ issuer: 'https://id.example/' }, /^warning: IDP_URL: .* calls itself https:\/\/id.example\/; write/],
    [{ code_challenge_methods_supported: ['plain'] }, /^warning: IDP_URL: .* does not offer PKCE with S256/],
    [
      { token_endpoint_auth_methods_supported: ['none'] },
      /^warning: IDP_CLIENT_KEY: .* offer private_key_jwt/,
    ],
    [{ token_endpoint: '\u001b[2J' }, /^warning: IDP_TOKEN_URL: .* something that is not an address/],
    [{}, /^ok: IDP_URL: the metadata/],
  ])('judges them with %j, at either of their places', async (difference, line) => {
    for (const place of PLACES) {
      using server = listening(({ url }) => {
        const { origin, pathname } = new URL(url);
        const [issuer, token_endpoint] = [`${origin}/tenant`, `${origin}/tenant/oauth/token`];
        if (pathname === place) return Response.json({ issuer, token_endpoint, ...difference });
        return new Response('', { status: 404 });
      });
      const IDP_URL = `${server.url}/tenant`;
      const { identityProvider } = await settingsOf({ IDP_URL, IDP_CLIENT_KEY: KEY_PAIR.privateJwk });
      expectLine(metadataFindings(identityProvider, await probeMetadata(IDP_URL)), line);
    }
  });
});

describe('the check of the clock', () => {
  const DATE = new Date();
  it.each([
    [31, {}, /^error: clock: this machine is 31 s ahead of the server of IDP_URL: set it right/],
    [-31, {}, /^error: clock: this machine is 31 s behind the server of IDP_URL: set it right/],
    [30, {}, /^ok: clock: this machine is 30 s ahead of the server of IDP_URL$/],
    [-30, {}, /^ok: clock: this machine is 30 s behind the server of IDP_URL$/],
    // From a cache, with the time at which it was stored: the second response counts.
    [0, { age: '40', date: new Date(0).toUTCString() }, /^ok: clock: .* 0 s ahead of the server of IDP_URL$/],
  ])('judges a machine that is %d s ahead %j', async (aheadSeconds, headers, line) => {
    const responses = [{ ...headers }, {}].map(async (more) => {
      using server = listening(() => new Response('', { headers: { date: DATE.toUTCString(), ...more } }));
      const receivedAt = Math.floor(DATE.getTime() / 1000 + aheadSeconds) * 1000;
      return { ...(await probe('token', server.url)), receivedAt };
    });
    expectLine(clockFindings({ IDP_URL: await Promise.all(responses) }), line);
  });
});

describe('the check of the ports', () => {
  it.each([
    ['', '192.0.2.1', 'EADDRNOTAVAIL'],
    ['', 'gateway.invalid', 'E'],
    ['METRICS_', 'metrics.invalid', 'E'],
    ['METRICS_', 'http://127.0.0.1', 'E'],
  ])('names a %sHOST on which the gateway cannot listen: %s', async (prefix, host, code) => {
    const listen = (address: { port: number; hostname: string }) =>
      Bun.serve({ ...address, fetch: () => new Response() });
    const problem = await listenOrExplain(prefix, 4175, host, listen);
    expect(problem).toStartWith(`cannot listen on ${host}:4175 (${code}`);
    expect(problem).toEndWith(`, ${prefix}HOST and ${prefix}PORT)`);
  });

  it('tells a gateway that listens already from a stranger', async () => {
    await using world = startWorld();
    using metrics = new Metrics().serve({ port: 0, hostname: '127.0.0.1' });
    using stranger = listening(() => Response.json({ status: 'ok' }));
    const own = { PORT: String(world.port), METRICS_PORT: String(metrics.port) };
    expect(shown(await checkPorts(await settingsOf(own)))).toEqual([
      `ok: PORT: a gateway listens on port ${world.port} already`,
      `ok: METRICS_PORT: a gateway listens on port ${metrics.port} already`,
    ]);
    const taken = checkPorts(await settingsOf({ PORT: String(stranger.port) }));
    expectLine(await taken, /^error: port \d+ is taken \(PORT\)/);
    const free = checkPorts(await settingsOf({ HOST: '192.0.2.1' }));
    expectLine(await free, /^error: cannot listen on 192.0.2.1:0/);
    const url = checkPorts(await settingsOf({ HOST: 'http://127.0.0.1' }));
    expectLine(await url, /^error: cannot listen on http:\/\/127.0.0.1:0/);
  });
});

describe('the check of Redis', () => {
  it.each([
    [`redis://:${PASSWORD}@127.0.0.1:1`, /^error: .* redis:\/\/127.0.0.1:1 does not accept connections/],
    ['redis+unix:///run/none.sock', /^error: REDIS_URL: redis\+unix:\/\/\/run\/none.sock does not exist/],
    [`redis://:${PASSWORD}@redis.invalid`, /^error: .* redis:\/\/redis.invalid has a host name that is not/],
  ])('finds that nothing responds at %s', async (url, line) => {
    expectLine(await checkRedis(url), line);
  });

  it.each([
    ['redis', /^error: REDIS_URL: redis:\/\/[\d.:]+ cannot be reached \(no Redis\)$/],
    ['rediss', /^error: REDIS_URL: rediss:\/\/[\d.:]+ cannot be reached \(ERR_SSL_\w+\)$/],
  ])('prints no more of a server that is no Redis than one word: %s', async (protocol, line) => {
    const stranger = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', () => socket.end(`-${'A'.repeat(10_000)}\u001b[2J\r\n`));
    });
    stranger.listen(0, '127.0.0.1');
    const { port } = Object(stranger.address());
    expectLine(await checkRedis(`${protocol}://127.0.0.1:${port}`), line);
    stranger.close();
  });

  describeWith([REDIS_SERVER], 'judges one', () => {
    const ACL = `ACL SETUSER gateway on >${PASSWORD} ~music-gateway:* ${NEEDED}`;
    const LACKS = new RegExp(`^error: REDIS_URL: .* ${RegExp.escape(NEEDED)}`);
    const WRONG_PASSWORD =
      /^error: REDIS_URL: redis:\/\/[\d.:]+ does not accept the user name or the password/;
    const OWN = `gateway:${PASSWORD}@`;
    it.each([
      ['', '', /^ok: REDIS_URL: redis:\/\/[\d.:]+ works; its version is \d+\.\d+\.\d+$/],
      [`CONFIG SET requirepass ${PASSWORD}`, `:${PASSWORD}@`, /^ok: REDIS_URL: redis:\/\/[\d.:]+ works/],
      [`CONFIG SET requirepass ${PASSWORD}`, '', WRONG_PASSWORD],
      ['CONFIG SET requirepass other', `:${PASSWORD}@`, WRONG_PASSWORD],
      [ACL, OWN, /^ok: REDIS_URL: .* works$/],
      ...['-set', '-time', '-get', '-del', '-eval'].map(
        (denied) => [`${ACL} ${denied}`, OWN, LACKS] as const,
      ),
      [
        'CONFIG SET maxmemory-policy allkeys-lru',
        '',
        /^warning: REDIS_URL: .* allkeys-lru, .* to noeviction/,
      ],
      [
        'LPUSH music-gateway:check-config x',
        '',
        /^error: .* refuses what the gateway needs, .* \(WRONGTYPE\)/,
      ],
      ['CONFIG SET maxmemory 1', '', /^error: REDIS_URL: redis:\/\/[\d.:]+ is full/],
      ['REPLICAOF 127.0.0.1 1', '', /^error: REDIS_URL: redis:\/\/[\d.:]+ is a replica/],
    ] as const)('after "%s", as the user "%s"', async (command, user, line) => {
      await using redis = await startRedis();
      using admin = new RedisAdmin(redis.url);
      const [name, ...parameters] = command.split(' ');
      if (name) await admin.send(name, parameters);
      expectLine(await checkRedis(redis.url.replace('//', `//${user}`)), line);
    });

    it('and leaves no record behind', async () => {
      await using redis = await startRedis();
      using admin = new RedisAdmin(redis.url);
      await checkRedis(redis.url);
      expect(await admin.keys('*')).toEqual([]);
      expect(await admin.send('INFO', ['commandstats'])).toMatch(/cmdstat_set:calls=[1-9]/);
    });
  });
});
