import { expect, it } from 'bun:test';
import { clientKeyPair } from '../../support/client-keys.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { ORIGIN } from '../../support/world.ts';
import { startTraceReceiver } from './trace-receiver.ts';

/** In every token, code, verifier, prompt, path, query, header and body. */
const MARK = 's3cr3t';
/** Of the client, as the proxy in front names it. */
const CLIENT_ADDRESS = '203.0.113.7';
const CLIENT_KEY = await clientKeyPair('ES256', MARK);
const COOKIE_KEY = Buffer.alloc(32, MARK).toString('base64url');
const SECRETS = {
  production: { COOKIE_KEYS: COOKIE_KEY, IDP_CLIENT_KEY: CLIENT_KEY.privateJwk },
  development: { IDP_CLIENT_SECRET: `${MARK}-client` },
};
/** Without these in the metrics, the search would prove nothing. */
const EXPECTED =
  'clientRefused tokensTooLarge sessionEnded toldByUpstream generationTimeout renewed replayed rejected unreachable';

/** What the servers behind the gateway respond to a call with this word in its path, token, code, key or body. */
const RESPONSES: Readonly<Record<string, (host: string) => Response | Promise<Response>>> = {
  expired: () => refuse(401),
  refused: () => refuse(422),
  rejected: () => refuse(400),
  broken: () => new Response(MARK, { status: 500 }),
  unknown: () => Response.json({ error: 'invalid_client', error_description: MARK }, { status: 401 }),
  foreign: () => Response.json({ error: `${MARK}-error`, error_description: MARK }, { status: 400 }),
  malformed: () => new Response(`${MARK} is not JSON`),
  otherNames: () => Response.json({ [MARK]: MARK }),
  silent: () => new Promise(() => {}),
  left: () => new Promise(() => {}),
  moved: (host) => {
    const location = `http://${host}/v1/next?access_token=${MARK}`;
    return new Response(null, { status: 302, headers: { location, 'set-cookie': `a=${MARK}` } });
  },
  large: () => tokens(`${MARK.repeat(1000)}-large`),
  endless: () => new Response(withoutEnd()),
  audio: () => new Response(MARK.repeat(10_000), { headers: { 'x-generation-id': `${MARK}-generation` } }),
};
const WORD = new RegExp(`${MARK}-(${Object.keys(RESPONSES).join('|')})`);
async function* withoutEnd() {
  yield MARK;
  await new Promise(() => {});
}
const refuse = (status: number) => Response.json({ error: { message: `${MARK}-message` } }, { status });
const tokens = (access = `${MARK}-access-2`) =>
  Response.json({ access_token: access, refresh_token: `${MARK}-refresh-2`, email: `${MARK}@mail.test` });

const SIGNED_IN = {
  origin: ORIGIN,
  cookie: `svc_music_access=${MARK}-access; svc_music_refresh=${MARK}-refresh; other=${MARK}`,
  'content-type': 'application/json',
  'x-forwarded-for': CLIENT_ADDRESS,
};
type Init = { method?: string; body?: string; headers?: object; signal?: AbortSignal };
type Flow = readonly [path: string, init?: Init];

function post(path: string, body: unknown, key = MARK): Flow {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return [path, { method: 'POST', body: text, headers: { 'idempotency-key': key } }];
}
function refreshing(word: string): Flow {
  const cookie = `svc_music_access=${MARK}-expired; svc_music_refresh=${MARK}-${word}`;
  return ['/api/auth/session', { headers: { cookie } }];
}
const GRANT = { code: `${MARK}-code`, code_verifier: `${MARK}-verifier`.padEnd(43, 'v') };
const ORDER = { model: `${MARK}-model`, prompt: `${MARK}-prompt`, music_length_ms: 3000 };
const GENERATE = '/api/music/generate';
const PROXIED = `/api/upstream/v1/${MARK}`;
const FLOWS: readonly Flow[] = [
  ...['code', 'foreign', 'broken', 'otherNames', 'unknown', 'large'].map((code) =>
    post('/api/auth/idp', { ...GRANT, code: `${MARK}-${code}` }),
  ),
  post('/api/auth/idp', { ...GRANT, code_verifier: MARK }),
  ...['renewed', 'rejected', 'malformed', 'silent', 'large'].map(refreshing),
  ...['audio', 'refused', 'silent'].map((key) => post(GENERATE, ORDER, `${MARK}-${key}`)),
  ...[{ ...ORDER, music_length_ms: MARK }, `{"prompt": "${MARK}`, MARK.repeat(400_000)].map((body) =>
    post(GENERATE, body),
  ),
  post('/api/auth/logout', {}),
  ['/api/auth/session'],
  ['/api/music/models'],
  ['/api/music/models', { headers: { origin: `https://${MARK}.test` } }],
  [`${PROXIED}-moved?token=${MARK}`],
  [`${PROXIED}?token=${MARK}`, { method: 'PUT', body: `${MARK}-broken` }],
  [`/api/upstream/v1/auth/${MARK}?token=${MARK}`],
  [`/api/upstream/v1/music/public/${MARK}`],
  [`/${MARK}`, { method: 'PROPFIND' }],
  [`/${MARK}?token=${MARK}`],
];

/** Sends one request with that id, and returns the values of the cookies in the response. */
async function send(url: string, id: string, [path, init]: Flow): Promise<string[]> {
  const headers = { ...SIGNED_IN, 'x-request-id': id, ...init?.headers };
  const response = await fetch(url + path, { ...init, headers, redirect: 'manual' }).catch(() => undefined);
  await response?.arrayBuffer().catch(() => {});
  const cookies = response?.headers.getSetCookie() ?? [];
  return cookies.flatMap((cookie) => Bun.Cookie.parse(cookie).value || []);
}

it.each(Object.entries(SECRETS))('a gateway in %s writes no secret', async (NODE_ENV, secrets) => {
  const log: string[] = [];
  const credentials: string[] = [];
  const addresses: (string | null)[] = [];
  const departed = new AbortController();
  using server = Bun.serve({
    ...{ port: 0, hostname: '127.0.0.1', idleTimeout: 0 },
    async fetch(request) {
      const { url, headers } = request;
      const body = await request.text();
      const basic = /^Basic (.+)/.exec(headers.get('authorization') ?? '')?.[1];
      const assertion = new URLSearchParams(body).get('client_assertion');
      credentials.push(...[basic, assertion].flatMap((each) => each ?? []));
      if (url.endsWith('/v1/me')) addresses.push(headers.get('x-forwarded-for'));
      const own = [url, body, headers.get('idempotency-key')].join();
      const word = (WORD.exec(own) ?? WORD.exec(headers.get('authorization') ?? ''))?.[1] ?? '';
      if (word === 'left') departed.abort();
      return RESPONSES[word]?.(headers.get('host') ?? '') ?? tokens();
    },
  });
  // The first export fails, so that the log says why.
  let exports = 0;
  await using receiver = startTraceReceiver(() => new Response(MARK, { status: exports++ ? 200 : 500 }));
  const metricsPort = await freePorts(1);
  // Two flows wait for these, and the process for the longest of all.
  const timeouts = ['SIGN_IN', 'READ', 'LOGOUT', 'STREAM'].map((name) => [`TIMEOUT_${name}_MS`, '4000']);
  const settings = {
    ...Object.fromEntries(timeouts),
    ...secrets,
    NODE_ENV,
    LOG_LEVEL: 'trace',
    UPSTREAM_URL: server.url.origin,
    IDP_URL: server.url.origin,
    METRICS_PORT: String(metricsPort),
    REDIS_URL: `redis://:${MARK}@127.0.0.1:1`,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_HEADERS: `api-key=${MARK}`,
    LOG_SESSION: 'true',
    COOKIE_KEYS_ACCEPT_PLAIN: 'true',
    FORWARD_CLIENT_ADDRESS: 'true',
    TRUSTED_PROXIES: '127.0.0.1',
  };
  await using gateway = await startGatewayProcess(settings, (line) => log.push(line));
  const { url } = gateway;
  const odd = [
    `GET /api/music/models HTTP/1.1\r\nHost: ${MARK}\r\nOrigin: ${ORIGIN}`,
    `Cookie: svc_music_access=${MARK}"{\r\nX-Request-Id: flow-odd-\r\nTraceparent: 00-${MARK}`,
    `User-Agent: ${MARK}\r\nX-Forwarded-For: ${MARK}\r\nConnection: close\r\n\r\n`,
  ];
  const [cookies] = await Promise.all([
    Promise.all(FLOWS.map((flow, index) => send(url, `flow-${index}-`, flow))),
    send(url, 'flow-left-', [`${PROXIED}-left`, { signal: departed.signal }]),
    rawRequest(Number(new URL(url).port), odd.join('\r\n')),
  ]);
  // The token was renewed before.
  cookies.push(await send(url, 'flow-replay-', refreshing('renewed')));
  const linesOf = (id: unknown) => log.filter((line) => line.includes(`"flow-${id}-"`)).length;
  const ids = [...FLOWS.keys(), 'left', 'odd', 'replay'];
  await eventually(() => ids.every((id) => linesOf(id) === 1), 'one log line of each flow');
  // Bun would print the address of a body that breaks off.
  const endless = await fetch(`${url}${PROXIED}-endless`, { headers: SIGNED_IN });
  await server.stop(true);
  await expect(endless.bytes()).rejects.toThrow();
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  gateway.kill('SIGTERM');
  expect(await gateway.exited).toBe(0);
  const exported = receiver.received.map(({ bytes }) => bytes.toString('latin1'));
  const written = [...log, metrics, gateway.stderr(), ...exported].join('\n');

  expect(credentials.length).toBeGreaterThanOrEqual(5);
  expect(cookies.flat().length).toBeGreaterThanOrEqual(2);
  expect(addresses).toContain(CLIENT_ADDRESS);
  // A sealed token has no mark, so the cookies themselves are looked for too.
  const own = [MARK, CLIENT_ADDRESS, COOKIE_KEY, ...CLIENT_KEY.secrets];
  for (const secret of [...own, ...credentials, ...cookies.flat()]) expect(written).not.toContain(secret);
  for (const value of EXPECTED.split(' ')) expect(metrics).toContain(`="${value}"`);
  for (const fact of [
    '"sessionAfter":"',
    '"tokenProblem":"no access_token"',
    'Redis cannot be used',
    '"brokenBody":true',
  ])
    expect(written).toContain(fact);
  expect(receiver.spans.length).toBeGreaterThan(FLOWS.length);
});
