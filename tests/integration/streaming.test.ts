import { describe, expect, it } from 'bun:test';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { releasedBody } from '../support/released-body.ts';
import { ACCESS_ONLY, envelopeMessage, startWorld, type World } from '../support/world.ts';

const GENERATE = { model: 'm', prompt: 'p', music_length_ms: 3000 };

const STREAMS = [
  {
    name: 'POST /api/music/generate',
    call: 'POST /v1/music',
    send: (world: World, signal?: AbortSignal) =>
      world.request('/api/music/generate', {
        cookie: ACCESS_ONLY,
        json: GENERATE,
        ...(signal && { signal }),
      }),
  },
  {
    name: 'the proxy',
    call: 'GET /v1/music/creations/1/content',
    send: (world: World, signal?: AbortSignal) =>
      world.request('/api/upstream/v1/music/creations/1/content', {
        cookie: ACCESS_ONLY,
        ...(signal && { signal }),
      }),
  },
  {
    name: 'public playback',
    call: 'GET /v1/music/public/1/content',
    send: (world: World, signal?: AbortSignal) =>
      world.request('/api/upstream/v1/music/public/1/content', { ...(signal && { signal }) }),
  },
];

describe.each(STREAMS)('the body of $name', ({ call, send }) => {
  it('arrives as the upstream produces it', async () => {
    await using world = startWorld();
    const body = releasedBody();
    world.upstream.on(call, () => new Response(body.stream));
    body.release('first ');
    const response = await send(world);
    const reader = response.body?.getReader();
    const first = await reader?.read();
    expect(Buffer.from(first?.value ?? []).toString()).toBe('first ');
    body.release('second');
    body.end();
    const second = await reader?.read();
    expect(Buffer.from(second?.value ?? []).toString()).toBe('second');
    expect((await reader?.read())?.done).toBe(true);
  });

  it('may take longer than the deadline, which ends with the headers', async () => {
    await using world = startWorld({ TIMEOUT_STREAM_MS: '1000' });
    const body = releasedBody();
    world.upstream.on(call, () => new Response(body.stream));
    body.release('a');
    const response = await send(world);
    // A second call that runs into the same deadline shows that it has passed for the first.
    const never = Promise.withResolvers<Response>();
    world.upstream.on('GET /v1/late', () => never.promise);
    await envelopeMessage(await world.request('/api/upstream/v1/late', { cookie: ACCESS_ONLY }), 502);
    body.release('b');
    body.end();
    expect(await response.text()).toBe('ab');
    never.resolve(new Response());
  });

  it('breaks off at the client when it breaks off at the upstream', async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<{ destroy(): void }>();
    await using upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
      begin(socket);
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await send(world);
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('hello');
    (await begun).destroy();
    await expect(reader?.read()).rejects.toThrow();
  });
});

// A generation is not given up: left-generation.test.ts.
describe.each(STREAMS.slice(1))('the body of $name', ({ call, send }) => {
  it('is given up upstream when the client goes away in the middle', async () => {
    await using world = startWorld();
    const body = releasedBody();
    world.upstream.on(call, () => new Response(body.stream));
    body.release('first');
    const client = new AbortController();
    const response = await send(world, client.signal);
    await response.body?.getReader().read();
    client.abort();
    await body.cancelled;
  });
});

describe('a client that goes away before the headers', () => {
  it.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])(
    'aborts a proxied %s upstream',
    async (method) => {
      await using world = startWorld();
      const aborted = Promise.withResolvers<Response>();
      world.upstream.on(`${method} /v1/slow`, ({ signal }) => {
        signal.addEventListener('abort', () => aborted.resolve(new Response()));
        return aborted.promise;
      });
      const client = new AbortController();
      const gone = world.request('/api/upstream/v1/slow', {
        method,
        cookie: ACCESS_ONLY,
        signal: client.signal,
      });
      await world.upstream.arrived(`${method} /v1/slow`);
      client.abort();
      expect(gone).rejects.toThrow();
      await aborted.promise;
      expect(world.log).toEqual([]);
    },
  );

  it('aborts a session check upstream', async () => {
    await using world = startWorld();
    const aborted = Promise.withResolvers<Response>();
    world.upstream.on('GET /v1/me', ({ signal }) => {
      signal.addEventListener('abort', () => aborted.resolve(new Response()));
      return aborted.promise;
    });
    const client = new AbortController();
    const gone = world.request('/api/auth/session', { cookie: ACCESS_ONLY, signal: client.signal });
    await world.upstream.arrived('GET /v1/me');
    client.abort();
    await expect(gone).rejects.toThrow();
    await aborted.promise;
  });

  it('leaves a generation to finish: it is paid for', async () => {
    await using world = startWorld();
    const held = Promise.withResolvers<Response>();
    let aborted = false;
    world.upstream.on('POST /v1/music', ({ signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      return held.promise;
    });
    world.upstream.on('GET /v1/slow', ({ signal }) => {
      const abort = Promise.withResolvers<Response>();
      signal.addEventListener('abort', () => abort.resolve(new Response()));
      return abort.promise;
    });
    const client = new AbortController();
    const options = { cookie: ACCESS_ONLY, signal: client.signal };
    const generation = world.request('/api/music/generate', { ...options, json: GENERATE });
    const proxied = world.request('/api/upstream/v1/slow', options);
    await Promise.all([world.upstream.arrived('POST /v1/music'), world.upstream.arrived('GET /v1/slow')]);
    const proxiedCall = world.upstream.last('GET /v1/slow');
    const proxiedAborted = new Promise((resolve) => proxiedCall.signal.addEventListener('abort', resolve));
    client.abort();
    await Promise.allSettled([generation, proxied]);
    // The proxied call, cut off at the same moment, has been aborted upstream; the generation has not.
    await proxiedAborted;
    expect(aborted).toBe(false);
    held.resolve(new Response('audio'));
    expect(await world.line({ route: '/api/music/generate' })).toMatchObject({
      level: 'info',
      clientGone: 'waiting',
    });
  });
});
