import { afterAll, describe, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { checkClient } from '../../../src/check/client-check.ts';
import { clockFindings } from '../../../src/check/clock-check.ts';
import type { Finding } from '../../../src/check/finding.ts';
import { probe } from '../../../src/check/http-probe.ts';
import { checkPorts } from '../../../src/check/port-check.ts';
import { metadataFindings, probeMetadata } from '../../../src/check/provider-metadata.ts';
import { checkRedis } from '../../../src/check/redis-check.ts';
import { socketFindings } from '../../../src/check/socket-check.ts';
import { UPSTREAM_PROBE_PATH, upstreamFinding } from '../../../src/check/upstream-check.ts';
import { loadSettings, type Settings } from '../../../src/gateway/settings/settings.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { clientKeyPair } from '../../support/client-keys.ts';
import { ROOT } from '../../support/documents.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { startTestSandbox } from '../../support/sandbox-account.ts';
import { startWorld } from '../../support/world.ts';
import { checkConfig, SETTINGS } from './bun-run-start.ts';

const WOULD_START = 'ok: the gateway would start with these settings';
const PASSWORD = 'hush-redis';
const CLIENT_SECRET = 'hush-hush-hush-hush-hush-hush-hush';
const KEY_PAIR = clientKeyPair('ES256');
const SECRETS = [PASSWORD, CLIENT_SECRET, ...KEY_PAIR.secrets];
const BY_SECRET = { IDP_CLIENT_SECRET: CLIENT_SECRET };
const BY_KEY = { IDP_CLIENT_KEY: KEY_PAIR.privateJwk };
const provider = await startTestSandbox();
afterAll(() => provider.stop());

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

function listening(fetch: (request: Request) => Response) {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch });
  return { url: server.url.origin, port: server.port, [Symbol.dispose]: () => void server.stop(true) };
}

// That it prints the problems and warnings with which the gateway does not start, or does: start.test.ts.
describe('bun run check-config', () => {
  /** Warnings about the limits of this machine are left out. */
  async function run(settings: Record<string, string>, ...options: string[]) {
    const { status, output, errors } = await checkConfig(settings, ...options);
    for (const secret of SECRETS) expect(output + errors).not.toContain(secret);
    const lines = output.trimEnd().split('\n');
    return { status, lines: lines.filter((line) => !/MAX_IN_FLIGHT_REQUESTS|tcp_wmem/.test(line)) };
  }

  it('accepts what would start, without a connection to any server, but no option that it does not know', async () => {
    const settings = { REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:1`, IDP_CLIENT_SECRET: CLIENT_SECRET };
    expect(await run(settings)).toEqual({ status: 0, lines: [WOULD_START] });
    const lines = ['error: --conect is not an option; the only one is --connect'];
    expect(await run({}, '--conect')).toEqual({ status: 1, lines });
  });

  it('finds slips with which the gateway starts, and the misspelled name of a setting that is missing', async () => {
    const name = 'warning: UPSTREAM_URI is not a setting: is UPSTREAM_URL meant?';
    const twice = { UPSTREAM_URL: 'http://127.0.0.1:1/v1', UPSTREAM_URI: PASSWORD };
    const error = expect.stringMatching(/^error: UPSTREAM_URL: .* ends with \/v1/);
    expect(await run(twice)).toEqual({ status: 1, lines: [name, error, WOULD_START] });
    const missing = await run({ ...twice, UPSTREAM_URL: '' });
    expect(missing.lines.slice(0, 2)).toEqual([name, 'error: UPSTREAM_URL is required and not set']);
  });

  it.each(['.env', '.env.local', '.env.production', '.env.production.local'])(
    'warns in production of a file %s, from which Bun takes settings',
    async (name) => {
      const folder = await mkdtemp(`${tmpdir()}/check-config-`);
      const lines = Object.entries({ ...SETTINGS, ALLOWED_ORIGINS: 'https://studio.test', NODE_ENV: '' });
      await Bun.write(`${folder}/${name}`, lines.map(([key, value]) => `${key}=${value}\n`).join(''));
      // No machine has this address, so the gateway ends after its warnings.
      const run = (file: string, NODE_ENV: string) =>
        runToEnd([process.execPath, ROOT + file], {
          cwd: folder,
          environment: { NODE_ENV, HOST: '203.0.113.1' },
        });
      for (const file of ['src/check/check-config.ts', 'src/index.ts']) {
        const { output } = await run(file, 'production');
        expect(output).toContain(
          `${folder}/${name} sets what the environment does not: remove it, unless it is meant for production`,
        );
        expect((await run(file, '')).output).not.toContain(folder);
      }
      await rm(folder, { recursive: true });
    },
  );

  it('asks every server with --connect, and says that all is well', async () => {
    using upstream = listening(({ headers }) => {
      return new Response('', { status: headers.has('authorization') ? 500 : 401 });
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
  });

  it('waits for 5 seconds at most, for all servers at once', async () => {
    let connections = 0;
    const atFirstEnd = Promise.withResolvers<number>();
    const silent = net.createServer((socket) => {
      connections++;
      socket.on('error', () => {}).on('close', () => atFirstEnd.resolve(connections));
    });
    silent.listen(0, '127.0.0.1');
    const address = `127.0.0.1:${Object(silent.address()).port}`;
    const http = { UPSTREAM_URL: `http://${address}`, IDP_URL: `http://${address}` };
    const { status, lines } = await run({ ...http, REDIS_URL: `redis://${address}` }, '--connect');
    silent.close();
    expect(lines.filter((line) => /^error: .* does not respond within 5 seconds/.test(line))).toHaveLength(2);
    expect(lines).toContainEqual(expect.stringMatching(/^error: REDIS_URL: .* with or without TLS/));
    expect(status).toBe(1);
    // The upstream, the metadata in two places, the token endpoint and Redis.
    expect(await atFirstEnd.promise).toBe(5);
  });
});

const NONE = 'http://127.0.0.1:1';
const NO_REDIS = `redis://:${PASSWORD}@127.0.0.1:1`;
it.each<[Check, string, string, RegExp]>([
  ['upstream', 'UPSTREAM_URL', NONE, /^error: UPSTREAM_URL: .* does not accept connections/],
  ['client', 'IDP_URL', NONE, /^error: IDP_URL: .* does not accept connections.*ECONNREFUSED/],
  ['ports', 'HOST', '192.0.2.1', /^error: cannot listen on 192.0.2.1:0 \(EADDRNOTAVAIL, HOST and PORT\)$/],
  ['redis', 'REDIS_URL', NO_REDIS, /^error: .*redis:\/\/127.0.0.1:1 does not accept/],
  ['redis', 'REDIS_URL', 'redis+unix:///run/none.sock', /^error: .*unix:\/\/\/run\/none.sock does not exist/],
])('the check of the %s finds that nothing is possible with %s=%s', async (check, name, value, line) => {
  expectLine(await found(check, { [name]: value }), line);
});

const REFUSED = 'does not accept the client: compare IDP_CLIENT_ID';
it.each<[Check, status: number, error: string, RegExp, credential?: object]>([
  ['upstream', 503, '', /^error: UPSTREAM_URL: .* responds with 503 .*: see its log/],
  ['upstream', 301, '', /^warning: UPSTREAM_URL: .* responds with 301 .* follows no redirect/],
  ['upstream', 404, '', /^warning: UPSTREAM_URL: .* responds with 404 .* is the path of the address right/],
  ['client', 404, '', /^error: IDP_TOKEN_URL: .* responds with 404 .* is the address right/],
  ['client', 503, 'invalid_grant', /^error: IDP_CLIENT_ID: .* 503 and invalid_grant .* is not known/],
  ['client', 400, 'invalid_request', /^warning: .* 400 and invalid_request .* is not known/],
  ['client', 400, 'unauthorized_client', /^error: .* not let the client use authorization codes/],
  ['client', 401, 'invalid_client', RegExp(`^error: .* ${REFUSED}, and`)],
  ['client', 401, 'invalid_client', RegExp(`^error: .* ${REFUSED} and IDP_CLIENT_SECRET, `), BY_SECRET],
  ['client', 401, 'invalid_client', RegExp(`^error: .* ${REFUSED}, the public key `), BY_KEY],
])(
  'the check of the %s judges a server that responds with %d %s',
  async (check, status, error, line, credential = {}) => {
    const body = error ? { error } : {};
    using server = listening(() => Response.json(body, { status, headers: { location: '/elsewhere' } }));
    expectLine(await found(check, { UPSTREAM_URL: server.url, IDP_URL: server.url, ...credential }), line);
  },
);

it.each(['/tenant/.well-known/openid-configuration', '/.well-known/oauth-authorization-server/tenant'])(
  'the check of the metadata compares those at %s with the settings',
  async (place) => {
    using server = listening(({ url }) => {
      if (new URL(url).pathname !== place) return Response.json({});
      const token_endpoint = `https://id.example/token?key=${PASSWORD}`;
      const methods = { token_endpoint_auth_methods_supported: ['none'] };
      const challenges = { code_challenge_methods_supported: ['plain'] };
      return Response.json({ issuer: '\u001b[2J', token_endpoint, ...methods, ...challenges });
    });
    const findings = await found('metadata', { IDP_URL: `${server.url}/tenant`, ...BY_KEY });
    expect(findings.map(({ level, text }) => `${level}: ${text}`)).toEqual([
      expect.stringMatching(
        /^warning: IDP_TOKEN_URL: .* names the token endpoint https:\/\/id.example\/token;/,
      ),
      expect.stringMatching(/^warning: IDP_URL: .* calls itself something that is not an address;/),
      expect.stringMatching(/^warning: IDP_URL: .* does not offer PKCE with S256/),
      expect.stringMatching(/^warning: IDP_CLIENT_KEY: .* offer private_key_jwt/),
    ]);
  },
);

it.each([
  [31, {}, /^error: clock: this machine is 31 s ahead of the server of IDP_URL: set it right/],
  [-30, {}, /^ok: clock: this machine is 30 s behind the server of IDP_URL$/],
  // From a cache, with the time at which it was stored: the second response counts.
  [0, { age: '40', date: new Date(0).toUTCString() }, /^ok: clock: .* 0 s ahead of the server of IDP_URL$/],
])('the check of the clock judges a machine that is %d s ahead %j', (seconds, ofTheFirst, line) => {
  const responses = [ofTheFirst, {}].map((more) => {
    const headers = new Headers({ date: new Date(100_000).toUTCString(), ...more });
    const response = { status: 200, headers, body: null };
    return { response, receivedAt: 100_000 + seconds * 1000 };
  });
  expectLine(clockFindings({ IDP_URL: responses }), line);
});

it.each([
  ['4096\t16384\t4194304\n', 256, ['4096 KiB for a reader that stops, too much for the 256 MiB of memory']],
  ['4096\t16384\t4194304\n', 4000, []],
  ['4096\t16384\t131072\n', 125, []],
  ['4096\t16384\t131072\n', 124, ['128 KiB for a reader that stops, too much for the 124 MiB of memory']],
  ['', 0, []],
])('the check of the sockets judges send buffers of %j in %d MiB', (sendBuffers, MiB, found) => {
  const findings = socketFindings(MiB * 1024 ** 2, sendBuffers);
  const advice = 'use deploy/60-music-gateway.conf, or --sysctl for a container';
  expect(findings).toEqual(
    found.map((text) => ({
      level: 'warning',
      text: `net.ipv4.tcp_wmem lets the kernel keep ${text}: ${advice}`,
    })),
  );
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

describeWith([REDIS_SERVER], 'the check of Redis judges it, and leaves no fact,', () => {
  const NEEDED = '+eval +time +get +set +del';
  const ACL = `ACL SETUSER gateway on >${PASSWORD} ~music-gateway:* ${NEEDED}`;
  const OWN = `gateway:${PASSWORD}@`;
  it.each<[command: string, user: string, RegExp]>([
    ['', '', /^ok: REDIS_URL: redis:\/\/[\d.:]+ works; its version is \d+\.\d+\.\d+$/],
    [`CONFIG SET requirepass ${PASSWORD}`, `:${PASSWORD}@`, /^ok: REDIS_URL: redis:\/\/[\d.:]+ works/],
    ['CONFIG SET requirepass other', `:${PASSWORD}@`, /^error: .* not accept the user name or the password/],
    [ACL, OWN, /^ok: REDIS_URL: .* works$/],
    ...['-set', '-time', '-get', '-del', '-eval'].map((denied): [string, string, RegExp] => {
      return [`${ACL} ${denied}`, OWN, new RegExp(`^error: .* ${RegExp.escape(NEEDED)}`)];
    }),
    ['CONFIG SET maxmemory-policy allkeys-lru', '', /^warning: .* allkeys-lru, .* to noeviction/],
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
