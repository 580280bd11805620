import { describe, expect, it, setSystemTime } from 'bun:test';
import net from 'node:net';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../support/metrics.ts';
import { ACCESS_ONLY, ORIGIN, startWorld } from '../support/world.ts';

const HEAD_LINES = `Host: g\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n`;

/** Sends these bytes, and reads nothing of the answer. */
function connect(port: number, bytes: string): net.Socket {
  const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes));
  return socket.pause();
}

describe('the line of a request', () => {
  it('counts no bytes of an answer to HEAD', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/models', () => new Response('x'.repeat(50_000)));
    await world.request('/api/music/models', { cookie: ACCESS_ONLY, method: 'HEAD' });
    const line = await world.line({ route: '/api/music/models' });
    expect(line).toMatchObject({ method: 'HEAD', status: 200 });
    expect(line).not.toContainKey('bytes');
  });

  it('says that the client went away while it was sending its body', async () => {
    await using world = startWorld();
    const request = `PUT /api/upstream/v1/x HTTP/1.1\r\n${HEAD_LINES}Content-Length: 100\r\n\r\nabc`;
    const socket = connect(world.port, request);
    await world.roundTrip();
    socket.destroy();
    const line = await world.line({ method: 'PUT' });
    expect(line).toMatchObject({ status: 400, clientGone: 'waiting' });
  });

  it('neither blames the upstream nor counts what was sent when the client had gone', async () => {
    const metrics = new Metrics();
    await using world = startWorld({}, metrics);
    world.upstream.on('GET /v1/slow', () => new Promise(() => {}));
    const client = new AbortController();
    const gone = world.request('/api/upstream/v1/slow', { cookie: ACCESS_ONLY, signal: client.signal });
    await world.upstream.arrived('GET /v1/slow');
    client.abort();
    await expect(gone).rejects.toThrow();
    const line = await world.line({ clientGone: 'waiting' });
    expect(line).not.toContainAnyKeys(['reason', 'cause']);
    const found = await samplesOf(metrics.registry);
    expect(found.get('errors_total{reason="upstreamUnreachable"}')).toBe(0);
    expect([...found.keys()].filter((name) => name.startsWith('sent_bytes'))).toEqual([]);
  });

  it('of a large whole answer comes when its body has ended', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/models', () => new Response(new Uint8Array(7_500_000)));
    const socket = connect(world.port, `GET /api/music/models HTTP/1.1\r\n${HEAD_LINES}\r\n`);
    await world.upstream.arrived('GET /v1/models');
    await world.roundTrip();
    expect(world.lines).not.toContainEqual(expect.objectContaining({ route: '/api/music/models' }));
    socket.destroy();
    expect(await world.line({ route: '/api/music/models' })).toMatchObject({ clientGone: 'streaming' });
  });

  it('says that the upstream stood still, not that its client went away, when Bun cut the client off', async () => {
    await using world = startWorld();
    world.upstream.on(
      'GET /v1/stalled',
      () => new Response(new ReadableStream({ start: (body) => body.enqueue(new Uint8Array(20_000)) })),
    );
    const client = new AbortController();
    const options = { cookie: ACCESS_ONLY, signal: client.signal };
    const response = await world.request('/api/upstream/v1/stalled', options);
    await response.body?.getReader().read();
    // As after the idle timeout, which is too long for a test.
    setSystemTime(Date.now() + 60_000);
    client.abort();
    const line = await world.line({ route: '/api/upstream/*' });
    setSystemTime();
    expect(line).toMatchObject({ level: 'warn', brokenBody: true, cause: 'stalled', bytes: 20_000 });
    expect(line).not.toContainKey('clientGone');
  });

  it('does not blame the upstream for a reader that stood still', async () => {
    await using world = startWorld();
    let pieces = 0;
    const pull = (body: ReadableStreamDefaultController) => {
      pieces++;
      body.enqueue(new Uint8Array(100_000));
    };
    world.upstream.on('GET /v1/flood', () => new Response(new ReadableStream({ pull })));
    const socket = connect(world.port, `GET /api/upstream/v1/flood HTTP/1.1\r\n${HEAD_LINES}\r\n`);
    // Until nothing moves any more: all buffers are full.
    for (let before = -1; pieces === 0 || before !== pieces; ) {
      before = pieces;
      await Bun.sleep(100);
    }
    setSystemTime(Date.now() + 60_000);
    socket.destroy();
    const line = await world.line({ route: '/api/upstream/*' });
    setSystemTime();
    expect(line).toMatchObject({ level: 'info', clientGone: 'streaming' });
    expect(line).not.toContainKey('brokenBody');
  });
});
