import { afterAll, describe, expect, it } from 'bun:test';
import net from 'node:net';
import { checkClient } from '../../../src/check/client-check.ts';
import { clockFindings } from '../../../src/check/clock-check.ts';
import type { Finding } from '../../../src/check/finding.ts';
import { probe } from '../../../src/check/http-probe.ts';
import { checkPorts } from '../../../src/check/port-check.ts';
import { metadataFindings, probeMetadata } from '../../../src/check/provider-metadata.ts';
import { checkRedis } from '../../../src/check/redis-check.ts';
import { UPSTREAM_PROBE_PATH, upstreamFinding } from '../../../src/check/upstream-check.ts';
import { loadSettings, type Settings } from '../../../src/gateway/settings/settings.ts';
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
const [key = '', expired = '', valid = ''] = (await Bun.file(CERTIFICATES).text()).split(
  /(?<=END .*-----\n)/,
);

const JWKS = { keys: [KEY_PAIR.publicJwk] };
const BASIC = { token_endpoint_auth_method: 'client_secret_basic', client_secret: CLIENT_SECRET } as const;
const SIGNED = { token_endpoint_auth_method: 'private_key_jwt', jwks: JWKS } as const;
/** Each knows the client in one of these ways. */
const PROVIDERS = {
  public: await startTestSandbox(),
  secret: await startTestSandbox({ credentials: BASIC }),
  key: await startTestSandbox({ credentials: SIGNED }),
};
afterAll(() => Promise.all(Object.values(PROVIDERS).map((provider) => provider.stop())));

const CHECKS = {
  upstream: async ({ upstreamUrl }: Settings) => [
    upstreamFinding(upstreamUrl, await probe('models', upstreamUrl + UPSTREAM_PROBE_PATH)),
  ],
  client: async ({ identityProvider }: Settings) => [await checkClient(identityProvider)],
  metadata: async ({ identityProvider }: Settings) =>
    metadataFindings(identityProvider, await probeMetadata(identityProvider.issuer)),
  ports: checkPorts,
  redis: ({ redisUrl }: Settings) => checkRedis(redisUrl),
};
type Check = keyof typeof CHECKS;

async function found(check: Check, environment: Readonly<Record<string, string>>) {
  const outcome = await loadSettings({ ...SETTINGS, ...environment });
  if (!outcome.ok) throw new Error(outcome.problems.join('\n'));
  return CHECKS[check](outcome.settings);
}

/** Expects one line, or one beside those that are ok; none may contain a secret. */
function expectLine(findings: readonly Finding[], line: RegExp): void {
  const lines = findings.map(({ level, text }) => `${level}: ${text}`);
  for (const secret of SECRETS) expect(lines.join('\n')).not.toContain(secret);
  const expected = line.source.startsWith('^ok') ? lines : lines.filter((each) => !each.startsWith('ok: '));
  expect(expected).toEqual([expect.stringMatching(line)]);
}

function listening(fetch: (request: Request) => Response, tls?: Bun.TLSOptions) {
  const server = Bun.serve({ port: 0, hostname: '0.0.0.0', fetch, ...(tls && { tls }) });
  const url = `http${tls ? 's' : ''}://127.0.0.1:${server.port}`;
  return { url, port: server.port, [Symbol.dispose]: () => void server.stop(true) };
}

// That it prints the problems and warnings with which the gateway does not start, or does: start.test.ts.
describe('bun run check-config', () => {
  /** Warnings about the limits of this machine are left out. */
  async function run(settings: Record<string, string>, ...options: string[]) {
    const { status, output, errors } = await checkConfig(settings, ...options);
    for (const secret of SECRETS) expect(output + errors).not.toContain(secret);
    expect(errors).toBe('');
    const lines = output.trimEnd().split('\n');
    return { status, lines: lines.filter((line) => !line.includes('MAX_IN_FLIGHT_REQUESTS')) };
  }

  it('accepts what would start, without a connection to any server, but no option that it does not know', async () => {
    const settings = { REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:1`, IDP_CLIENT_SECRET: CLIENT_SECRET };
    expect(await run(settings)).toEqual({ status: 0, lines: [WOULD_START] });
    const lines = ['error: --conect is not an option; the only one is --connect'];
    expect(await run({}, '--conect')).toEqual({ status: 1, lines });
  });

  it('asks every server with --connect, and says that all is well', async () => {
    const asked: Request[] = [];
    using upstream = listening((request) => {
      asked.push(request);
      return new Response('', { status: 401 });
    });
    const issuer = PROVIDERS.public.identityProviderUrl;
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
    using upstream = listening(() => new Response(), { key, cert: expired });
    using provider = listening(() => new Response(), { key, cert: valid });
    const addresses = { UPSTREAM_URL: `https://localhost:${upstream.port}`, IDP_URL: provider.url };
    const { lines } = await run({ ...addresses, NODE_EXTRA_CA_CERTS: CERTIFICATES }, '--connect');
    expect(lines.filter((line) => line.startsWith('error: '))).toEqual([
      expect.stringMatching(/^error: UPSTREAM_URL: .* that has expired: renew it \(CERT_HAS_EXPIRED\)/),
      expect.stringMatching(/^error: IDP_URL: .* for another host name/),
    ]);
  });
});

const REDIS_NOWHERE = `redis://:${PASSWORD}@127.0.0.1:1`;
it.each<[Check, string, string, RegExp]>([
  ['upstream', 'UPSTREAM_URL', NOWHERE, /^error: UPSTREAM_URL: .* does not accept connections/],
  ['upstream', 'UPSTREAM_URL', 'http://a.invalid', /^error: UPSTREAM_URL: .* host name that is not found/],
  ['client', 'IDP_URL', NOWHERE, /^error: IDP_URL: .* does not accept connections.*ECONNREFUSED/],
  ['ports', 'HOST', '192.0.2.1', /^error: cannot listen on 192.0.2.1:0 \(EADDRNOTAVAIL, HOST and PORT\)$/],
  ['ports', 'HOST', 'http://127.0.0.1', /^error: cannot listen on http:\/\/127.0.0.1:0 \(E\w+, HOST and/],
  ['ports', 'METRICS_HOST', 'a.invalid', /^error: .* a.invalid:9464 \(E\w+, METRICS_HOST and METRICS_PORT\)/],
  ['redis', 'REDIS_URL', REDIS_NOWHERE, /^error: .* redis:\/\/127.0.0.1:1 does not accept connections/],
  ['redis', 'REDIS_URL', 'redis+unix:///run/none.sock', /^error: .*unix:\/\/\/run\/none.sock does not exist/],
  ['redis', 'REDIS_URL', `redis://:${PASSWORD}@a.invalid`, /^error: .* redis:\/\/a.invalid has a host name/],
])('the check of the %s finds that nothing is possible with %s=%s', async (check, name, value, line) => {
  const port = name === 'METRICS_HOST' ? { METRICS_PORT: '9464' } : {};
  expectLine(await found(check, { ...port, [name]: value }), line);
});

it.each<[Check, status: number, body: object, RegExp]>([
  ['upstream', 503, {}, /^error: UPSTREAM_URL: .* responds with 503 .*: see its log/],
  ['upstream', 301, {}, /^warning: UPSTREAM_URL: .* responds with 301 .* follows no redirect/],
  ['upstream', 404, {}, /^warning: UPSTREAM_URL: .* responds with 404 .* is the path of the address right/],
  ['upstream', 200, {}, /^ok: UPSTREAM_URL: .* responds with 200/],
  ['client', 404, {}, /^error: IDP_TOKEN_URL: .* responds with 404 .* is the address right/],
  ['client', 503, {}, /^error: IDP_CLIENT_ID: .* responds with 503 .* so it is not known/],
  ['client', 503, { error: 'invalid_grant' }, /^error: .* 503 and invalid_grant .* is not known/],
  ['client', 400, { error: 'invalid_request' }, /^warning: .* 400 and invalid_request .* is not known/],
  ['client', 400, { error: 'unauthorized_client' }, /^error: .* not let the client use authorization codes/],
  ['client', 200, { access_token: 'a' }, /^error: IDP_TOKEN_URL: .* 200 to a code that does not exist/],
])('the check of the %s judges a server that responds with %d %j', async (check, status, body, line) => {
  using server = listening(() => Response.json(body, { status, headers: { location: '/elsewhere' } }));
  expectLine(await found(check, { UPSTREAM_URL: server.url, IDP_URL: server.url }), line);
});

it('the check of the upstream finds a certificate that nobody has signed', async () => {
  using server = listening(() => new Response(), { key, cert: valid });
  const findings = await found('upstream', { UPSTREAM_URL: `https://localhost:${server.port}` });
  expectLine(findings, /^error: UPSTREAM_URL: .* in NODE_EXTRA_CA_CERTS/);
});

const OTHER_KEY = clientKeyPair('ES256').privateJwk;
const REFUSED = 'does not accept the client: compare IDP_CLIENT_ID';
it.each<[keyof typeof PROVIDERS, string, string, string]>([
  ['public', 'IDP_CLIENT_ID', 'none', `${REFUSED}, and`],
  ['secret', 'IDP_CLIENT_SECRET', CLIENT_SECRET, 'accepts the client$'],
  ['secret', 'IDP_CLIENT_SECRET', 'wrong', `${REFUSED} and IDP_CLIENT_SECRET, .* for client_secret_basic$`],
  ['key', 'IDP_CLIENT_KEY', KEY_PAIR.privateJwk, 'accepts the client$'],
  ['key', 'IDP_CLIENT_KEY', OTHER_KEY, `${REFUSED}, the public key .* private_key_jwt$`],
])('the check of a %s client judges %s', async (client, name, value, line) => {
  const findings = await found('client', { IDP_URL: PROVIDERS[client].identityProviderUrl, [name]: value });
  const level = line.startsWith('accepts') ? 'ok' : 'error';
  expectLine(findings, new RegExp(`^${level}: IDP_CLIENT_ID: .* ${line}`));
});

describe('the check of the metadata', () => {
  it('finds nothing where there are none', async () => {
    using server = listening(() => Response.json({ error: 'invalid_grant' }));
    expect(await found('metadata', { IDP_URL: server.url })).toEqual([]);
  });

  const PLACES = [
    '/tenant/.well-known/openid-configuration',
    '/.well-known/oauth-authorization-server/tenant',
  ];
  const ENDPOINT = { token_endpoint: `https://id.example/token?key=${PASSWORD}` };
  const METHODS = { token_endpoint_auth_methods_supported: ['none'] };
  it.each([
    [ENDPOINT, /^warning: IDP_TOKEN_URL: .* names the token endpoint https:\/\/id.example\/token;/],
    [{ issuer: 'https://id.example/' }, /^warning: IDP_URL: .* calls itself https:\/\/id.example\/; write/],
    [{ code_challenge_methods_supported: ['plain'] }, /^warning: IDP_URL: .* does not offer PKCE with S256/],
    [METHODS, /^warning: IDP_CLIENT_KEY: .* offer private_key_jwt/],
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
      const settings = { IDP_URL: `${server.url}/tenant`, IDP_CLIENT_KEY: KEY_PAIR.privateJwk };
      expectLine(await found('metadata', settings), line);
    }
  });
});

const DATE = new Date();
it.each([
  [31, {}, /^error: clock: this machine is 31 s ahead of the server of IDP_URL: set it right/],
  [-31, {}, /^error: clock: this machine is 31 s behind the server of IDP_URL: set it right/],
  [30, {}, /^ok: clock: this machine is 30 s ahead of the server of IDP_URL$/],
  [-30, {}, /^ok: clock: this machine is 30 s behind the server of IDP_URL$/],
  // From a cache, with the time at which it was stored: the second response counts.
  [0, { age: '40', date: new Date(0).toUTCString() }, /^ok: clock: .* 0 s ahead of the server of IDP_URL$/],
])('the check of the clock judges a machine that is %d s ahead %j', async (aheadSeconds, headers, line) => {
  const responses = [headers, {}].map(async (more) => {
    using server = listening(() => new Response('', { headers: { date: DATE.toUTCString(), ...more } }));
    const receivedAt = Math.floor(DATE.getTime() / 1000 + aheadSeconds) * 1000;
    return { ...(await probe('token', server.url)), receivedAt };
  });
  expectLine(clockFindings({ IDP_URL: await Promise.all(responses) }), line);
});

it('the check of the ports tells a gateway that listens already from a stranger', async () => {
  await using world = startWorld();
  using metrics = new Metrics().serve({ port: 0, hostname: '127.0.0.1' });
  using stranger = listening(() => Response.json({ status: 'ok' }));
  const own = { PORT: String(world.port), METRICS_PORT: String(metrics.port) };
  expect(await found('ports', own)).toEqual([
    { level: 'ok', text: `PORT: a gateway listens on port ${world.port} already` },
    { level: 'ok', text: `METRICS_PORT: a gateway listens on port ${metrics.port} already` },
  ]);
  expectLine(await found('ports', { PORT: String(stranger.port) }), /^error: port \d+ is taken \(PORT\)/);
});

it.each([
  ['redis', /^error: REDIS_URL: redis:\/\/[\d.:]+ cannot be reached \(no Redis\)$/],
  ['rediss', /^error: REDIS_URL: rediss:\/\/[\d.:]+ cannot be reached \(ERR_SSL_\w+\)$/],
])('the check of Redis prints one word of a server that is no Redis: %s', async (protocol, line) => {
  const stranger = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.end(`-${'A'.repeat(10_000)}\u001b[2J\r\n`));
  });
  stranger.listen(0, '127.0.0.1');
  const { port } = Object(stranger.address());
  expectLine(await found('redis', { REDIS_URL: `${protocol}://127.0.0.1:${port}` }), line);
  stranger.close();
});

describeWith([REDIS_SERVER], 'the check of Redis judges it, and leaves no record,', () => {
  const ACL = `ACL SETUSER gateway on >${PASSWORD} ~music-gateway:* ${NEEDED}`;
  const DENIED = ['-set', '-time', '-get', '-del', '-eval'];
  const LACKS = new RegExp(`^error: .* ${RegExp.escape(NEEDED)}`);
  const WRONG_PASSWORD = /^error: REDIS_URL: redis:\/\/[\d.:]+ does not accept the user name or the password/;
  const OWN = `gateway:${PASSWORD}@`;
  it.each<[command: string, user: string, RegExp]>([
    ['', '', /^ok: REDIS_URL: redis:\/\/[\d.:]+ works; its version is \d+\.\d+\.\d+$/],
    [`CONFIG SET requirepass ${PASSWORD}`, `:${PASSWORD}@`, /^ok: REDIS_URL: redis:\/\/[\d.:]+ works/],
    [`CONFIG SET requirepass ${PASSWORD}`, '', WRONG_PASSWORD],
    ['CONFIG SET requirepass other', `:${PASSWORD}@`, WRONG_PASSWORD],
    [ACL, OWN, /^ok: REDIS_URL: .* works$/],
    ...DENIED.map((denied): [string, string, RegExp] => [`${ACL} ${denied}`, OWN, LACKS]),
    ['CONFIG SET maxmemory-policy allkeys-lru', '', /^warning: .* allkeys-lru, .* to noeviction/],
    ['LPUSH music-gateway:check-config x', '', /^error: .* what the gateway needs, .* \(WRONGTYPE\)/],
    ['CONFIG SET maxmemory 1', '', /^error: REDIS_URL: redis:\/\/[\d.:]+ is full/],
    ['REPLICAOF 127.0.0.1 1', '', /^error: REDIS_URL: redis:\/\/[\d.:]+ is a replica/],
  ])('after "%s", as the user "%s"', async (command, user, line) => {
    await using redis = await startRedis();
    using admin = new RedisAdmin(redis.url);
    const [name, ...parameters] = command.split(' ');
    if (name) await admin.send(name, parameters);
    expectLine(await found('redis', { REDIS_URL: redis.url.replace('//', `//${user}`) }), line);
    if (line.source.startsWith('^ok')) expect(await admin.keys('*')).toEqual([]);
  });
});
