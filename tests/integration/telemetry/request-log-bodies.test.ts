import { afterEach, beforeEach, describe, expect, it, setSystemTime } from 'bun:test';
import { once } from 'node:events';
import net from 'node:net';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { releasedBody } from '../../support/released-body.ts';
import { GENERATE } from '../../support/routes.ts';
import { ACCESS_ONLY, ORIGIN, startWorld, type World } from '../../support/world.ts';

/** The flood has stopped when no piece was asked for in so many checks: a busy machine stalls Bun's thread for fetches. */
const QUIET_CHECKS = 200;

let world: World;
beforeEach(() => {
  world = startWorld();
});
afterEach(() => world[Symbol.asyncDispose]());

/** Sends a request by hand, and reads nothing of the response. */
function connect(requestLine: string, rest = '\r\n'): net.Socket {
  const head = `${requestLine} HTTP/1.1\r\nHost: g\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n`;
  const socket = net.connect(world.port, '127.0.0.1', () => socket.write(head + rest));
  return socket.pause();
}

/** What the log says when the response has ended with the clock this far ahead, as after an idle timeout. */
async function lineAMinuteLater(end: () => unknown) {
  setSystemTime(Date.now() + 60_000);
  try {
    end();
    return await world.line({ route: '/api/upstream/*' });
  } finally {
    setSystemTime();
  }
}

describe('the log line of a response with a body', () => {
  it('is written at the end of a stream, with the size of its body', async () => {
    const body = releasedBody();
    world.upstream.on('POST /v1/music', () => new Response(body.stream));
    body.release('first');
    const response = await world.request(GENERATE.path, GENERATE.options);
    expect(response.status).toBe(200);
    expect(world.lines).toEqual([]);
    body.release(Buffer.alloc(200_000));
    body.end();
    expect((await response.arrayBuffer()).byteLength).toBe(200_005);
    const line = await world.line({ route: '/api/music/generate' });
    expect(line).toMatchObject({ level: 'info', status: 200, bytes: 200_005 });
    expect(line).not.toContainAnyKeys(['clientGone', 'brokenBody']);
  });

  it('is written at the end of a large body that the upstream sent at once', async () => {
    world.upstream.on('GET /v1/models', () => new Response(new Uint8Array(7_500_000)));
    const socket = connect('GET /api/music/models');
    await once(socket, 'readable');
    expect(world.lines).not.toContainEqual(expect.objectContaining({ route: '/api/music/models' }));
    socket.destroy();
    expect(await world.line({ route: '/api/music/models' })).toMatchObject({ clientGone: 'streaming' });
  });

  it('counts no bytes of a response to HEAD', async () => {
    world.upstream.on('GET /v1/models', () => new Response('x'.repeat(50_000)));
    await world.request('/api/music/models', { cookie: ACCESS_ONLY, method: 'HEAD' });
    const line = await world.line({ route: '/api/music/models' });
    expect(line).toMatchObject({ method: 'HEAD', status: 200 });
    expect(line).not.toContainKey('bytes');
  });

  it('warns of a body that the upstream broke off, which is counted too', async () => {
    const relayed = Promise.withResolvers<void>();
    await using upstream = await startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n${'x'.repeat(300_000)}`);
      void relayed.promise.then(() => socket.end());
    });
    const metrics = new Metrics();
    await using broken = startWorld({ UPSTREAM_URL: upstream.url }, metrics);
    const response = await broken.request('/api/upstream/v1/track?q=a-secret', { cookie: ACCESS_ONLY });
    let bytes = 0;
    const reading = async () => {
      for await (const piece of response.body ?? []) {
        bytes += piece.byteLength;
        if (bytes === 300_000) relayed.resolve();
      }
    };
    await expect(reading()).rejects.toThrow();
    const line = await broken.line({ brokenBody: true });
    expect(line).toMatchObject({ level: 'warn', status: 200, bytes: 300_000 });
    expect(line).not.toContainKey('clientGone');
    const samples = await samplesOf(metrics.registry);
    expect(samples.get('broken_bodies_total{route="/api/upstream/*"}')).toBe(1);
  });

  it('says that the upstream stalled, not that the client disconnected, when Bun cut the client off', async () => {
    const stalled = () => new ReadableStream({ start: (body) => body.enqueue(new Uint8Array(20_000)) });
    world.upstream.on('GET /v1/stalled', () => new Response(stalled()));
    const client = new AbortController();
    const options = { cookie: ACCESS_ONLY, signal: client.signal };
    const response = await world.request('/api/upstream/v1/stalled', options);
    await response.body?.getReader().read();
    const line = await lineAMinuteLater(() => client.abort());
    expect(line).toMatchObject({ level: 'warn', brokenBody: true, cause: 'stalled', bytes: 20_000 });
    expect(line).not.toContainKey('clientGone');
  });

  it('does not blame the upstream for a reader that stalled', async () => {
    let pieces = 0;
    let checked = 0;
    let quiet = 0;
    const pull = (body: ReadableStreamDefaultController) => {
      pieces++;
      body.enqueue(new Uint8Array(100_000));
    };
    world.upstream.on('GET /v1/flood', () => new Response(new ReadableStream({ pull })));
    const socket = connect('GET /api/upstream/v1/flood');
    const isQuiet = () => {
      quiet = pieces > 0 && pieces === checked ? quiet + 1 : 0;
      checked = pieces;
      return quiet === QUIET_CHECKS;
    };
    await eventually(isQuiet, 'all buffers to be full');
    const line = await lineAMinuteLater(() => socket.destroy());
    expect(line).toMatchObject({ level: 'info', clientGone: 'streaming' });
    expect(line).not.toContainKey('brokenBody');
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
