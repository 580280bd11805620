import { describe, expect, it } from 'bun:test';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { releasedBody } from '../support/released-body.ts';
import { ACCESS_ONLY, startWorld } from '../support/world.ts';

const GENERATE = { model: 'm', prompt: 'p', music_length_ms: 3000 };

describe('the line of a streamed answer', () => {
  it('comes at its end, with the size of its body', async () => {
    await using world = startWorld();
    const body = releasedBody();
    world.upstream.on('POST /v1/music', () => new Response(body.stream));
    body.release('first');
    const response = await world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: GENERATE });
    expect(response.status).toBe(200);
    expect(world.lines).toEqual([]);
    body.release(Buffer.alloc(200_000));
    body.end();
    expect((await response.arrayBuffer()).byteLength).toBe(200_005);
    const line = await world.line({ route: '/api/music/generate' });
    expect(line).toMatchObject({ level: 'info', status: 200, bytes: 200_005 });
    expect(line).not.toContainAnyKeys(['clientGone', 'brokenBody']);
  });

  it('says that the client went away in the middle', async () => {
    await using world = startWorld();
    const body = releasedBody();
    world.upstream.on('GET /v1/endless', () => new Response(body.stream));
    body.release(Buffer.alloc(10));
    const client = new AbortController();
    await world.request('/api/upstream/v1/endless', { cookie: ACCESS_ONLY, signal: client.signal });
    client.abort();
    const line = await world.line({ route: '/api/upstream/*' });
    expect(line).toMatchObject({ level: 'info', status: 200, clientGone: 'streaming', bytes: 10 });
  });

  it('warns of a body that the upstream broke off', async () => {
    await using upstream = await startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n${'x'.repeat(300_000)}`);
      setTimeout(() => socket.destroy(), 50);
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request('/api/upstream/v1/track?q=a-secret', { cookie: ACCESS_ONLY });
    expect(response.arrayBuffer()).rejects.toThrow();
    const line = await world.line({ brokenBody: true });
    expect(line).toMatchObject({ level: 'warn', status: 200, bytes: 300_000 });
    expect(line).not.toContainKey('clientGone');
  });
});

describe('a client that goes away before the answer', () => {
  it('is in the line, which is then no warning', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/slow', ({ signal }) => {
      const gone = Promise.withResolvers<Response>();
      signal.addEventListener('abort', () => gone.resolve(new Response()));
      return gone.promise;
    });
    const client = new AbortController();
    const gone = world.request('/api/upstream/v1/slow', { cookie: ACCESS_ONLY, signal: client.signal });
    await world.upstream.arrived('GET /v1/slow');
    client.abort();
    await expect(gone).rejects.toThrow();
    expect(await world.line({ route: '/api/upstream/*' })).toMatchObject({
      level: 'info',
      clientGone: 'waiting',
      upstream: [{ call: 'proxy', outcome: 'client_gone' }],
    });
  });
});
