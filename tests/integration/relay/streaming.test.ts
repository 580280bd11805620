import { describe, expect, it } from 'bun:test';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { releasedBody } from '../../support/released-body.ts';
import { BUFFERED, GENERATE, PROXIED_METHODS, PUBLIC, proxied } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY, envelopeMessage, startWorld } from '../../support/world.ts';

const STREAMS = [GENERATE, proxied('GET'), proxied('POST'), PUBLIC].map((route) => ({
  ...route,
  call: route.calls.join(),
}));

async function readText(reader: { read(): Promise<{ value?: Uint8Array }> } | undefined): Promise<string> {
  return Buffer.from((await reader?.read())?.value ?? []).toString();
}

describe.each(STREAMS)('the body for $name', ({ path, options, call }) => {
  it('arrives as the upstream produces it', async () => {
    await using world = startWorld();
    const body = releasedBody();
    world.upstream.on(call, () => new Response(body.stream));
    body.release('first');
    const response = await world.request(path, options);
    const reader = response.body?.getReader();
    expect(await readText(reader)).toBe('first');
    body.release('second');
    body.end();
    expect(await readText(reader)).toBe('second');
    expect((await reader?.read())?.done).toBe(true);
  });

  it('breaks off at the client when it breaks off at the upstream', async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<{ destroy(): void }>();
    await using upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
      begin(socket);
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request(path, options);
    const reader = response.body?.getReader();
    expect(await readText(reader)).toBe('hello');
    (await begun).destroy();
    await expect(reader?.read()).rejects.toThrow();
  });
});

describe('the body of every streamed response', () => {
  it('may take longer than the deadline, which ends with its start', async () => {
    await using world = startWorld({ TIMEOUT_STREAM_MS: '1000' });
    const playing: { body: ReturnType<typeof releasedBody>; response: Response }[] = [];
    for (const { path, options, call } of STREAMS) {
      const body = releasedBody();
      world.upstream.on(call, () => new Response(body.stream));
      body.release('a');
      playing.push({ body, response: await world.request(path, options) });
    }
    // A later call that runs into the same deadline shows that it has passed for the others.
    world.upstream.on('GET /v1/late', () => new Promise(() => {}));
    await envelopeMessage(await world.request('/api/upstream/v1/late', { cookie: ACCESS_ONLY }), 502);
    for (const { body, response } of playing) {
      body.release('b');
      body.end();
      expect(await response.text()).toBe('ab');
    }
  });
});

// A generation continues when its client disconnects: left-generation.test.ts.
describe.each(STREAMS.slice(1))('the body for $name', ({ path, options, call }) => {
  it('is cancelled upstream when the client disconnects', async () => {
    await using world = startWorld();
    const body = releasedBody();
    world.upstream.on(call, () => new Response(body.stream));
    body.release('first');
    const client = new AbortController();
    const response = await world.request(path, { ...options, signal: client.signal });
    await response.body?.getReader().read();
    client.abort();
    await body.cancelled;
  });
});

describe('a client that disconnects before the headers', () => {
  const world = sharedWorld();

  it.each([...BUFFERED, ...PROXIED_METHODS.map(proxied), PUBLIC])(
    'aborts the call: $name',
    async ({ path, options, calls }) => {
      const call = calls.join();
      const aborted = Promise.withResolvers<Response>();
      world.upstream.on(call, ({ signal }) => {
        signal.addEventListener('abort', () => aborted.resolve(new Response()));
        return aborted.promise;
      });
      const client = new AbortController();
      const left = world.request(path, { ...options, signal: client.signal });
      await world.upstream.arrived(call);
      client.abort();
      await expect(left).rejects.toThrow();
      await aborted.promise;
      expect(world.log).toEqual([]);
    },
  );
});
