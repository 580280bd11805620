import { expect, it } from 'bun:test';
import { clockFindings } from '../../../src/check/clock-check.ts';
import { DEADLINE_MS, type Finding } from '../../../src/check/finding.ts';
import { checkRedis } from '../../../src/check/redis-check.ts';
import { socketFindings } from '../../../src/check/socket-check.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { CERTIFICATE } from '../../support/certificate.ts';
import { clientKeyPair } from '../../support/client-keys.ts';
import { ROOT } from '../../support/documents.ts';
import { SETTINGS } from '../../support/gateway-process.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { startTestSandbox } from '../../support/sandbox-account.ts';
import { createFolder } from '../../support/temporary-folder.ts';
import { startWorld } from '../../support/world.ts';
import { runScript } from './bun-run-start.ts';

const WOULD_START = 'ok: the gateway would start with these settings';
const PASSWORD = 'hush-redis';
const CLIENT_SECRET = 'hush-hush-hush-hush-hush-hush-hush';
const KEY_PAIR = await clientKeyPair('ES256');
const SECRETS = [PASSWORD, CLIENT_SECRET, ...KEY_PAIR.secrets];
const BY_SECRET = { IDP_CLIENT_SECRET: CLIENT_SECRET };
const BY_KEY = { IDP_CLIENT_KEY: KEY_PAIR.privateJwk };

type Settings = Record<string, string>;

/** Warnings about the limits of this machine are left out. */
async function run(settings: Settings, ...options: string[]) {
  const { status, output, errors } = await runScript(['check-config', ...options], settings);
  for (const secret of SECRETS) expect(output + errors).not.toContain(secret);
  const lines = output.trimEnd().split('\n');
  return { status, lines: lines.filter((line) => !/MAX_IN_FLIGHT_REQUESTS|tcp_wmem/.test(line)) };
}

const linesOf = (findings: readonly Finding[]) => findings.map(({ level, text }) => `${level}: ${text}`);
const serve = (fetch: (request: Request) => Response) => Bun.serve({ port: 0, hostname: '127.0.0.1', fetch });

// That it prints the problems and warnings with which the gateway does not start, or does: start.test.ts.
it('check-config accepts what would start, without a connection to any server, but no option that it does not know', async () => {
  const settings = { REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:1`, IDP_CLIENT_SECRET: CLIENT_SECRET };
  expect(await run(settings)).toEqual({ status: 0, lines: [WOULD_START] });
  const lines = ['error: --conect is not an option; the only one is --connect'];
  expect(await run({}, '--conect')).toEqual({ status: 1, lines });
});

it('check-config finds slips with which the gateway starts, and the misspelled name of a setting that is missing', async () => {
  const name = 'warning: UPSTREAM_URI is not a setting: is UPSTREAM_URL meant?';
  const twice = { UPSTREAM_URL: 'http://127.0.0.1:1/v1', UPSTREAM_URI: PASSWORD };
  const error = expect.stringMatching(/^error: UPSTREAM_URL: .* ends with \/v1/);
  expect(await run(twice)).toEqual({ status: 1, lines: [name, error, WOULD_START] });
  const missing = await run({ ...twice, UPSTREAM_URL: '' });
  expect(missing.lines.slice(0, 2)).toEqual([name, 'error: UPSTREAM_URL is required and not set']);
});

it('check-config warns in production of files from which Bun takes settings, as a start does', async () => {
  await using folder = await createFolder();
  const settings = Object.entries(SETTINGS).map(([name, value]) => `${name}=${value}\n`);
  const names = ['.env', '.env.production', '.env.local', '.env.production.local'];
  const files = names.map((name) => `${folder.path}/${name}`);
  for (const file of files) await Bun.write(file, settings.join(''));
  for (const script of ['src/check/check-config.ts', 'src/index.ts'])
    for (const NODE_ENV of ['production', '']) {
      // No machine has this address, so that the gateway ends after its warnings.
      const environment = { NODE_ENV, HOST: '203.0.113.1' };
      const command = [process.execPath, ROOT + script];
      const { output } = await runToEnd(command, { cwd: folder.path, environment });
      const warned = files.filter((file) => output.includes(`${file} sets what the environment does not`));
      expect(warned).toEqual(NODE_ENV ? files : []);
    }
});

it('check-config asks every server with --connect, a certified identity provider with an assertion, and says that all is well', async () => {
  const keys = [KEY_PAIR.publicJwk];
  const credentials = { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys } } as const;
  await using provider = await startTestSandbox({ credentials });
  using upstream = serve(({ headers }) => {
    return new Response('', { status: headers.has('authorization') ? 500 : 401 });
  });
  const [url, issuer] = [upstream.url.origin, provider.identityProviderUrl];
  const { status, lines } = await run({ UPSTREAM_URL: url, IDP_URL: issuer, ...BY_KEY }, '--connect');
  expect(lines.map((line) => line.replace(/\d+ s (?:ahead of|behind)/, '0 s from'))).toEqual([
    WOULD_START,
    `ok: UPSTREAM_URL: ${url} responds with 401 to GET /v1/models without a token`,
    `ok: IDP_CLIENT_ID: the token endpoint ${issuer}/oauth/token accepts the client`,
    'ok: IDP_URL: the metadata of the identity provider agrees with the settings',
    'ok: clock: this machine is 0 s from the server of UPSTREAM_URL',
    'ok: clock: this machine is 0 s from the server of IDP_URL',
    'ok: PORT: port 0 of 127.0.0.1 is free',
  ]);
  expect(status).toBe(0);
  const swapped = await run({ UPSTREAM_URL: issuer, IDP_URL: url, ...BY_KEY }, '--connect');
  const error = expect.stringMatching(/^error: UPSTREAM_URL and IDP_URL are swapped: /);
  expect([swapped.status, ...swapped.lines.slice(0, 2)]).toEqual([1, WOULD_START, error]);
  expect(swapped.lines.join()).not.toContain('is the address right');
});

const NAMED =
  'has a certificate that it has signed itself: name it, or its authority, in NODE_EXTRA_CA_CERTS';
it.each([
  ['nowhere', [], '', `${NAMED} (`],
  [
    '.env',
    [],
    `NODE_EXTRA_CA_CERTS=${CERTIFICATE}`,
    `${NAMED} in the environment: Bun reads that before it reads .env`,
  ],
  ['the environment', [`NODE_EXTRA_CA_CERTS=${CERTIFICATE}`], '', 'responds with 401 to GET /v1/models'],
])(
  'check-config --connect says of a certificate whose authority is named in %s what to do',
  async (_, given, own, found) => {
    await using folder = await createFolder();
    const file = Bun.file(CERTIFICATE);
    const tls = { cert: file, key: file };
    using upstream = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls,
      fetch: () => new Response('', { status: 401 }),
    });
    const settings = {
      ...SETTINGS,
      UPSTREAM_URL: upstream.url.origin,
      REDIS_URL: `rediss://127.0.0.1:${upstream.port}`,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    await Bun.write(`${folder.path}/.env`, lines.join('') + own);
    // This process may have the variable, too.
    const environment = ['env', '-u', 'NODE_EXTRA_CA_CERTS', ...given];
    const command = [...environment, process.execPath, `${ROOT}src/check/check-config.ts`, '--connect'];
    const { output } = await runToEnd(command, { cwd: folder.path });
    expect(output).toContain(`UPSTREAM_URL: ${upstream.url.origin} ${found}`);
    if (!given.length) expect(output).toContain(`REDIS_URL: ${settings.REDIS_URL} ${found}`);
  },
);

it('check-config waits for 5 seconds at most, for all servers at once', async () => {
  await using stack = new AsyncDisposableStack();
  const atFirstEnd = Promise.withResolvers<number[]>();
  let begunAt = Number.POSITIVE_INFINITY;
  const startSilent = async () =>
    stack.use(
      await startRawUpstream((socket) => {
        begunAt = Math.min(begunAt, performance.now());
        socket.on('close', () => atFirstEnd.resolve(servers.map((server) => server.connections())));
      }),
    );
  const servers = [await startSilent(), await startSilent(), await startSilent()] as const;
  const [upstream, provider, redis] = servers;
  const settings = {
    UPSTREAM_URL: upstream.url,
    IDP_URL: provider.url,
    REDIS_URL: redis.url.replace('http', 'redis'),
  };
  const { status, lines } = await run(settings, '--connect');
  expect(performance.now() - begunAt).toBeLessThan(2 * DEADLINE_MS);
  expect(lines.filter((line) => /^error: .* does not respond within 5 seconds/.test(line))).toHaveLength(2);
  expect(lines).toContainEqual(expect.stringMatching(/^error: REDIS_URL: .* with or without TLS/));
  expect(status).toBe(1);
  expect(Math.min(...(await atFirstEnd.promise))).toBePositive();
});

it('check-config --connect finds that nothing is possible where nothing listens', async () => {
  const nowhere = { HOST: '192.0.2.1', REDIS_URL: `redis+unix://:${PASSWORD}@localhost/run/none.sock` };
  const { status, lines } = await run(nowhere, '--connect');
  expect(lines).toEqual([
    WOULD_START,
    expect.stringMatching(/^error: UPSTREAM_URL: .* does not accept connections/),
    expect.stringMatching(/^error: IDP_URL: .* does not accept connections.*ECONNREFUSED/),
    expect.stringMatching(/^error: REDIS_URL: redis\+unix:\/\/localhost\/run\/none.sock does not exist/),
    'error: cannot listen on 192.0.2.1:0 (EADDRNOTAVAIL, HOST and PORT)',
  ]);
  expect(status).toBe(1);
});

const REFUSED = '^ok: .* 401 .*\nerror: .* does not accept the client: compare IDP_CLIENT_ID';
it.each<[status: number, error: string, lines: RegExp, credential?: Settings]>([
  [503, 'invalid_grant', /^error: .* 503 .*: see its log\nerror: .* 503 and invalid_grant .* is not known/],
  [301, '', /^warning: .* 301 .* no redirect.*\nerror: IDP_TOKEN_URL: .* 301 .* is the address right/],
  [404, '', /^warning: .* 404 .* the path .* right\?\nerror: IDP_TOKEN_URL: .* 404 .* is the address right/],
  [400, 'invalid_request', /^ok: .* 400 .*\nwarning: .* 400 and invalid_request .* is not known/],
  [400, 'unauthorized_client', /^ok: .* 400 .*\nerror: .* not let the client use authorization codes/],
  [401, 'invalid_client', RegExp(`${REFUSED}, and`)],
  [401, 'invalid_client', RegExp(`${REFUSED} and IDP_CLIENT_SECRET, `), BY_SECRET],
  [401, 'invalid_client', RegExp(`${REFUSED}, the public key `), BY_KEY],
])('check-config --connect judges responses with %d %s', async (status, error, lines, credential = {}) => {
  const body = error ? { error } : {};
  using server = serve(() => Response.json(body, { status, headers: { location: '/elsewhere' } }));
  const { origin } = server.url;
  const found = await run({ UPSTREAM_URL: origin, IDP_URL: origin, ...credential }, '--connect');
  const judged = found.lines.filter((line) => line !== WOULD_START && !/^ok: (?:clock|PORT)/.test(line));
  expect(judged).toHaveLength(2);
  expect(judged.join('\n')).toMatch(lines);
});

it.each(['/tenant/.well-known/openid-configuration', '/.well-known/oauth-authorization-server/tenant'])(
  'check-config --connect compares the metadata at %s with the settings',
  async (place) => {
    using server = serve(({ url }) => {
      if (new URL(url).pathname !== place) return Response.json({});
      const token_endpoint = `https://id.example/token?key=${PASSWORD}`;
      const methods = { token_endpoint_auth_methods_supported: ['none'] };
      const challenges = { code_challenge_methods_supported: ['plain'] };
      return Response.json({ issuer: '\u001b[2J', token_endpoint, ...methods, ...challenges });
    });
    // The same server for both is nothing swapped.
    const both = `${server.url}tenant`;
    const { lines } = await run({ UPSTREAM_URL: both, IDP_URL: both, ...BY_KEY }, '--connect');
    expect(lines.filter((line) => line.startsWith('warning: '))).toEqual([
      expect.stringMatching(/IDP_TOKEN_URL: .* names the token endpoint https:\/\/id.example\/token;/),
      expect.stringMatching(/IDP_URL: .* calls itself something that is not an address;/),
      expect.stringMatching(/IDP_URL: .* does not offer PKCE with S256/),
      expect.stringMatching(/IDP_CLIENT_KEY: .* offer private_key_jwt/),
    ]);
  },
);

it('check-config --connect tells a gateway that listens already from a stranger', async () => {
  await using world = startWorld();
  using metrics = new Metrics().serve({ port: 0, hostname: '127.0.0.1' });
  using stranger = serve(() => Response.json({ status: 'ok' }));
  const own = { PORT: String(world.port), METRICS_PORT: String(metrics.port) };
  expect((await run(own, '--connect')).lines.slice(-2)).toEqual([
    `ok: PORT: a gateway listens on port ${world.port} already`,
    `ok: METRICS_PORT: a gateway listens on port ${metrics.port} already`,
  ]);
  const { lines } = await run({ PORT: String(stranger.port) }, '--connect');
  expect(lines.at(-1)).toBe(`error: port ${stranger.port} is taken (PORT)`);
});

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
  expect(linesOf(clockFindings({ IDP_URL: responses }))).toEqual([expect.stringMatching(line)]);
});

it.each([
  ['4096\t16384\t131072\n', 124, ['128 KiB for a reader that stops, too much for the 124 MiB of memory']],
  ['4096\t16384\t131072\n', 125, []],
  ['', 0, []],
])('the check of the sockets judges send buffers of %j in %d MiB', (sendBuffers, MiB, found) => {
  const [begin, advice] = ['net.ipv4.tcp_wmem lets the kernel keep', 'use deploy/60-music-gateway.conf, or'];
  expect(linesOf(socketFindings(MiB * 1024 ** 2, sendBuffers))).toEqual(
    found.map((text) => `warning: ${begin} ${text}: ${advice} --sysctl for a container`),
  );
});

describeWith([REDIS_SERVER], 'the check of Redis judges it, and leaves no fact,', () => {
  const NEEDED = '+eval +time +get +set +del';
  const ACL = `ACL SETUSER gateway on >${PASSWORD} ~music-gateway:* ${NEEDED}`;
  const OWN = `gateway:${PASSWORD}@`;
  const WORKS = /^ok: REDIS_URL: redis:\/\/[\d.:]+ works; its version is \d+\.\d+\.\d+$/;
  type Row = [command: string, user: string, ...lines: RegExp[]];
  it.each<Row>([
    ['', '', WORKS],
    [`CONFIG SET requirepass ${PASSWORD}`, `:${PASSWORD}@`, WORKS],
    ['CONFIG SET requirepass other', `:${PASSWORD}@`, /^error: .* not accept the user name or the password/],
    [ACL, OWN, /^ok: REDIS_URL: .* works$/],
    ...['-set', '-time', '-get', '-del', '-eval'].map((denied): Row => {
      return [`${ACL} ${denied}`, OWN, new RegExp(`^error: .* ${RegExp.escape(NEEDED)}`)];
    }),
    ['CONFIG SET maxmemory-policy allkeys-lru', '', WORKS, /^warning: .* allkeys-lru, .* to noeviction/],
    ['CONFIG SET maxmemory 1', '', /^error: REDIS_URL: redis:\/\/[\d.:]+ is full/],
    ['REPLICAOF 127.0.0.1 1', '', /^error: REDIS_URL: redis:\/\/[\d.:]+ is a replica/],
  ])('after "%s", as the user "%s"', async (command, user, ...expected) => {
    await using redis = await startRedis();
    using admin = new RedisAdmin(redis.url);
    const [name, ...parameters] = command.split(' ');
    if (name) await admin.send(name, parameters);
    const lines = linesOf(await checkRedis(redis.url.replace('//', `//${user}`)));
    expect(lines.join()).not.toContain(PASSWORD);
    expect(lines).toEqual(expected.map((line) => expect.stringMatching(line)));
    if (lines[0]?.startsWith('ok')) expect(await admin.keys('*')).toEqual([]);
  });
});
