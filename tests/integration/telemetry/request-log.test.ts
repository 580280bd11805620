import { expect, it, jest } from 'bun:test';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { CollectedLines } from '../../../src/gateway/telemetry/collected-lines.ts';
import { createLogger } from '../../../src/gateway/telemetry/logger.ts';
import { ROOT } from '../../support/documents.ts';
import { RawConnection, rawRequest } from '../../support/raw-http.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { GENERATE } from '../../support/routes.ts';
import {
  accept,
  checkSession,
  cookies,
  LOGOUT,
  ME,
  pair,
  REFRESH,
  reply,
  scriptSignIn,
  signIn,
  signOut,
} from '../../support/session-calls.ts';
import { rawText } from '../../support/shared-world.ts';
import {
  ACCESS_ONLY,
  ORIGIN,
  REFRESH_ONLY,
  startWorld,
  storedTokens,
  testSettings,
} from '../../support/world.ts';

const MODELS = '/api/music/models';
const MODELS_CALL = 'GET /v1/models';
const SETTINGS = testSettings();

function requestFor(path: string, method = 'GET', headers = {}): Request {
  return new Request(`http://gateway.test${path}`, { method, headers: { origin: ORIGIN, ...headers } });
}

// Which facts have which level: metrics.test.ts. What a refresh notes: traces.test.ts, unit/refresh-coordinator.test.ts.
it('The log has one line of a request with these fields, the reason of a refusal, and no token, host or prompt', async () => {
  await using world = startWorld();
  world.upstream.on('GET /v1/models', async () => {
    await Bun.sleep(20);
    return Response.json({ data: [] });
  });
  const startedAt = performance.now();
  await (await world.request(MODELS, { cookie: ACCESS_ONLY })).arrayBuffer();
  const tookMs = performance.now() - startedAt;
  expect(world.lines).toEqual([
    {
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      method: 'GET',
      route: MODELS,
      status: 200,
      durationMs: expect.any(Number),
      headMs: expect.any(Number),
      bytes: '{"data":[]}'.length,
      upstream: [{ call: 'models', outcome: 200, ms: expect.any(Number) }],
      msg: 'request',
    },
  ]);
  for (const [, ms] of JSON.stringify(world.lines).matchAll(/ms":([\d.]+)/gi))
    expect(Number(ms)).toBeWithin(10, tookMs + 1);
  await rawRequest(world.port, 'GET /api/health HTTP/1.0\r\nConnection: close\r\n\r\n');
  await world.request(GENERATE.path, { cookie: ACCESS_ONLY, json: { model: 'm', prompt: '' } });
  await world.request(MODELS, { cookie: ACCESS_ONLY, method: 'HEAD' });
  expect(world.lines.slice(1)).toMatchObject([
    { route: '/api/health', status: 200 },
    { route: GENERATE.path, status: 400, reason: 'promptInvalid' },
    { method: 'HEAD', status: 200 },
  ]);
  expect(world.lines[3]).not.toContainKey('bytes');
});

/** The Cookie header of a browser that has received the response. */
function cookiesSetBy(response: Response): string {
  const stored = Object.entries(storedTokens(response));
  return stored.map(([name, value]) => `${name}=${value}`).join('; ');
}
const SEALED = { COOKIE_KEYS: Buffer.alloc(32).toString('base64url') };
it.each([
  ['plain', {}],
  ['sealed', SEALED],
])(
  'With LOG_SESSION the lines name a session, from its sign-in over each refresh to its end: %s cookies',
  async (_, own) => {
    await using world = startWorld({ LOG_SESSION: 'true', ...own });
    const { upstream, lines } = world;
    scriptSignIn(world);
    const first = cookiesSetBy(await signIn(world));
    upstream.on(ME, accept('access-2')).on(REFRESH, reply(200, pair(2)));
    const second = cookiesSetBy(await checkSession(world, first));
    await checkSession(world, first);
    await checkSession(world, second);
    upstream.on(ME, reply(401)).on(REFRESH, reply(401));
    await checkSession(world, second);
    upstream.on(LOGOUT, reply(200));
    await signOut(world, second);
    const names = [lines[0], lines[1]].map((line) => String(line?.['sessionAfter']));
    for (const name of names) expect(name).toMatch(/^[\w-]{16}$/);
    const rows = lines.map(({ session, sessionAfter, refresh }) => `${session} ${sessionAfter} ${refresh}`);
    const named = rows.map((row) => row.replace(names[0] ?? '', 'one').replace(names[1] ?? '', 'two'));
    expect(named).toEqual([
      'undefined one undefined',
      'one two renewed',
      'one two replayed',
      'two undefined undefined',
      'two undefined rejected',
      'two undefined undefined',
    ]);
  },
);

it.each([
  ['of a refresh since then', checkSession],
  ['none after a sign-out', signOut],
])(
  'With LOG_SESSION the line of a long call names the session that its response sets: %s',
  async (_, act) => {
    await using world = startWorld({ LOG_SESSION: 'true' });
    const { upstream } = world;
    const { promise, resolve } = Promise.withResolvers<Response>();
    const respond = accept('access-2', () => promise);
    upstream.on(MODELS_CALL, respond).on(REFRESH, reply(200, pair(2)));
    const long = world.request(MODELS, { cookie: cookies(1) });
    await upstream.arrived(MODELS_CALL, 2);
    upstream
      .on(ME, accept('access-3'))
      .on(REFRESH, reply(200, pair(3)))
      .on(LOGOUT, reply(200));
    await act(world, cookies(2));
    resolve(Response.json({}));
    await long;
    const [after, line] = world.lines;
    expect(line).toMatchObject({ route: MODELS, session: expect.any(String) });
    expect([line?.['sessionAfter']]).toEqual([after?.['sessionAfter']]);
    expect(line?.['session']).not.toBe(after?.['session']);
  },
);

it('Without LOG_SESSION no line names a session', async () => {
  await using world = startWorld();
  world.upstream.on(ME, accept('access-2')).on(REFRESH, reply(200, pair(2)));
  await checkSession(world, cookies(1));
  expect(world.lines).toMatchObject([{ refresh: 'renewed' }]);
  expect(JSON.stringify(world.lines)).not.toContain('"session');
});

it('The name of a session is another one after a restart, because its key is', () => {
  const program = "console.log(require('./src/gateway/crypto/session-hash.ts').sessionHash('refresh-1'))";
  const names = [1, 2].map(() =>
    Bun.spawnSync([process.execPath, '-e', program], { cwd: ROOT }).stdout.toString(),
  );
  expect(names[0]).toMatch(/^[\w-]{16}\n$/);
  expect(names[1]).not.toBe(names[0]);
});

// Other ends: relay/every-end.test.ts.
it('The line of a request says when the client disconnects while it sends its body', async () => {
  await using world = startWorld();
  const client = new RawConnection(world.port);
  client.send(rawText('PUT /api/upstream/v1/x', { lines: ['Content-Length: 100'], body: 'abc' }));
  await world.roundTrip();
  client.hangUp();
  expect(await world.line({ method: 'PUT' })).toMatchObject({ status: 400, clientGone: 'waiting' });
  expect(world.admission.relayedBodies.usedBytes).toBe(0);
});

it('The line of a request is an error for a fault of the gateway, with its place and without its message', async () => {
  const { logger, lines } = recordLog();
  const gateway = createGateway({ settings: SETTINGS, logger });
  gateway.get('/api/faulty', function handle() {
    throw new RangeError('a message\n    at nowhere');
  });
  expect((await gateway.handle(requestFor('/api/faulty'))).status).toBe(500);
  const cause = expect.stringMatching(/^RangeError at handle \(.*request-log\.test\.ts:\d+:\d+\)$/);
  expect(lines).toMatchObject([{ level: 'error', route: '/api/faulty', reason: 'internalError', cause }]);
});

it('The lines of 100 ms are written together, and at once with that of a sign-out or a refresh, because the process may be killed', async () => {
  jest.useFakeTimers();
  const written: string[] = [];
  const lines = new CollectedLines((text) => written.push(text));
  const gateway = createGateway({ settings: SETTINGS, logger: createLogger('info', lines) });
  for (let line = 0; line < 3; line++) await gateway.handle(requestFor('/'));
  jest.advanceTimersByTime(99);
  expect(written.map((text) => text.split('\n').length - 1)).toEqual([1]);
  jest.advanceTimersByTime(1);
  expect(written.map((text) => text.split('\n').length - 1)).toEqual([1, 2]);
  const explaining = [
    requestFor('/api/auth/logout', 'POST'),
    requestFor(MODELS, 'GET', { cookie: REFRESH_ONLY }),
  ];
  for (const request of explaining) {
    await gateway.handle(requestFor('/'));
    await gateway.handle(request);
  }
  expect(written.slice(2)).toEqual([
    expect.stringMatching(/"unmatched".*\n.*logout".*\n$/),
    expect.stringMatching(/"unmatched".*\n.*models".*\n$/),
  ]);
});
