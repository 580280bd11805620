import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { once } from 'node:events';
import net from 'node:net';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { GENERATE } from '../../support/routes.ts';
import {
  ACCESS_ONLY,
  ORIGIN,
  REFRESH_ONLY,
  type RequestOptions,
  SIGNED_IN,
  startWorld,
  testSettings,
  type World,
} from '../../support/world.ts';

const PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };
const NO_SERVER = 'http://127.0.0.1:9';
const MODELS = '/api/music/models';

let world: World;
beforeEach(() => {
  world = startWorld();
});
afterEach(() => world[Symbol.asyncDispose]());

/** The one line that was written. */
function onlyLine({ lines } = world) {
  expect(lines).toHaveLength(1);
  return lines[0] ?? {};
}

async function read(path: string, options: RequestOptions, from = world) {
  return (await from.request(path, options)).arrayBuffer();
}

describe('the log line of a request', () => {
  it('has these fields, and no others', async () => {
    world.upstream.on('GET /v1/models', () => Response.json({ data: [] }));
    await read(MODELS, { cookie: SIGNED_IN });
    expect(onlyLine()).toEqual({
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
    });
  });

  it('has the route of a load balancer’s request without a host', async () => {
    await rawRequest(world.port, 'GET /api/health HTTP/1.0\r\nConnection: close\r\n\r\n');
    expect(onlyLine()).toMatchObject({ route: '/api/health', status: 200 });
  });

  it('says why the gateway has refused', async () => {
    await read(GENERATE.path, { cookie: ACCESS_ONLY, json: { model: 'm', prompt: '' } });
    expect(onlyLine()).toMatchObject({ route: GENERATE.path, status: 400, reason: 'promptInvalid' });
  });
});

describe('the log line of a refresh', () => {
  const check = () => read('/api/auth/session', { cookie: SIGNED_IN });
  const refreshWith = (respond: () => Response | Promise<Response>) =>
    world.upstream
      .on('GET /v1/me', ({ headers }) =>
        headers.get('authorization') === 'Bearer access-2'
          ? Response.json({})
          : new Response('', { status: 401 }),
      )
      .on('POST /v1/auth/refresh', respond);

  it('says that it renewed the session, or that one with the spent token replayed it', async () => {
    refreshWith(() => Response.json(PAIR));
    await check();
    await check();
    expect(world.lines.map(({ refresh }) => refresh)).toEqual(['renewed', 'replayed']);
    expect(world.lines[0]?.['upstream']).toMatchObject([
      { call: 'me', outcome: 401 },
      { call: 'refresh', outcome: 200 },
      { call: 'me', outcome: 200 },
    ]);
  });

  it('says that requests shared one', async () => {
    const response = Promise.withResolvers<Response>();
    refreshWith(() => response.promise);
    const checks = [check(), check(), check()];
    await world.upstream.arrived('GET /v1/me', 3);
    await world.upstream.arrived('POST /v1/auth/refresh');
    response.resolve(Response.json(PAIR));
    await Promise.all(checks);
    expect(world.lines.map(({ refresh }) => refresh).toSorted()).toEqual(['renewed', 'shared', 'shared']);
  });
});

describe('the log line of a failure', () => {
  it('is a warning when no server is there, and names the innermost error', async () => {
    await using lonely = startWorld({ UPSTREAM_URL: NO_SERVER });
    await read(MODELS, { cookie: ACCESS_ONLY }, lonely);
    await read('/api/auth/session', { cookie: REFRESH_ONLY }, lonely);
    const failure = { level: 'warn', status: 502, cause: 'TypeError ECONNREFUSED' };
    const upstream = [{ call: 'models', outcome: 'connection_refused' }];
    expect(lonely.lines).toMatchObject([
      { ...failure, reason: 'upstreamUnreachable', upstream },
      { ...failure, refresh: 'unreachable' },
    ]);
  });

  it('is an error for a fault of the gateway, with its place and without its message', async () => {
    const { logger, lines } = recordLog();
    const settings = testSettings({ UPSTREAM_URL: NO_SERVER, IDP_URL: NO_SERVER });
    const gateway = createGateway({ settings, logger });
    gateway.get('/api/faulty', function handle() {
      throw new RangeError('a message\n    at nowhere');
    });
    const request = new Request('http://gateway.test/api/faulty', { headers: { origin: ORIGIN } });
    expect((await gateway.handle(request)).status).toBe(500);
    expect(lines).toMatchObject([{ level: 'error', route: '/api/faulty', reason: 'internalError' }]);
    expect(lines[0]?.['cause']).toMatch(/^RangeError at handle \(.*request-log\.test\.ts:\d+:\d+\)$/);
  });
});

describe('the log line of a response with a body', () => {
  it('is written at the end of a stream, with the size of its body', async () => {
    const rest = Promise.withResolvers<Buffer>();
    const track = async function* () {
      yield Buffer.alloc(5);
      yield await rest.promise;
    };
    world.upstream.on('POST /v1/music', () => new Response(track()));
    const response = await world.request(GENERATE.path, GENERATE.options);
    expect(world.lines).toEqual([]);
    rest.resolve(Buffer.alloc(200_000));
    await response.arrayBuffer();
    const line = await world.line({ route: GENERATE.path });
    expect(line).toMatchObject({ level: 'info', status: 200, bytes: 200_005 });
    expect(line).not.toContainAnyKeys(['clientGone', 'brokenBody']);
  });

  it('is written at the end of a large body that the upstream sent at once', async () => {
    world.upstream.on('GET /v1/models', () => new Response(new Uint8Array(7_500_000)));
    const socket = connect(`GET ${MODELS}`);
    await once(socket, 'readable');
    expect(world.lines).toEqual([]);
    socket.destroy();
    expect(await world.line({ route: MODELS })).toMatchObject({ clientGone: 'streaming' });
  });

  it('counts no bytes of a response to HEAD', async () => {
    world.upstream.on('GET /v1/models', () => new Response('x'.repeat(50_000)));
    await read(MODELS, { cookie: ACCESS_ONLY, method: 'HEAD' });
    expect(onlyLine()).toMatchObject({ method: 'HEAD', status: 200 });
    expect(onlyLine()).not.toContainKey('bytes');
  });
});

describe('the log line of a client that disconnects', () => {
  it('is no warning and blames nobody when the upstream had not responded', async () => {
    world.upstream.on('GET /v1/slow', () => new Promise(() => {}));
    const client = new AbortController();
    const gone = world.request('/api/upstream/v1/slow', { cookie: ACCESS_ONLY, signal: client.signal });
    await world.upstream.arrived('GET /v1/slow');
    client.abort();
    await expect(gone).rejects.toThrow();
    const line = await world.line({ route: '/api/upstream/*' });
    const upstream = [{ call: 'proxy', outcome: 'client_gone' }];
    expect(line).toMatchObject({ level: 'info', clientGone: 'waiting', bytes: 0, upstream });
    expect(line).not.toContainAnyKeys(['reason', 'cause']);
  });

  it('says so for a disconnect while the client was sending its body', async () => {
    const socket = connect('PUT /api/upstream/v1/x', 'Content-Length: 100\r\n\r\nabc');
    await world.roundTrip();
    socket.destroy();
    expect(await world.line({ method: 'PUT' })).toMatchObject({ status: 400, clientGone: 'waiting' });
  });
});

/** Sends a request by hand, and reads nothing of the response. */
function connect(requestLine: string, rest = '\r\n'): net.Socket {
  const head = `${requestLine} HTTP/1.1\r\nHost: g\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n`;
  const socket = net.connect(world.port, '127.0.0.1', () => socket.write(head + rest));
  return socket.pause();
}
