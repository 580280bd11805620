import { describe, expect, it } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { ORIGIN, SIGNED_IN, startWorld, type World } from '../../support/world.ts';
import { openSignedIn, rejection } from './page.ts';

const CALL = 'POST /v1/music';
const ORDER = { model: 'm-1', prompt: 'rain on a tin roof', music_length_ms: 30_000 };

/** How long the gateway reads paid audio after its client has gone. */
const SHORT = { TIMEOUT_STREAM_MS: '300' };

/** An upstream whose audio never ends; it tells when nobody takes it any more. */
function scriptEndlessAudio(world: World): Promise<void> {
  const cancelled = Promise.withResolvers<void>();
  world.upstream.on(
    CALL,
    () =>
      new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new Uint8Array(1000)),
          cancel: () => cancelled.resolve(),
        }),
      ),
  );
  return cancelled.promise;
}

/** happy-dom goes on reading a body that was cancelled; this is Bun's own fetch. */
function clientOutsideOfPages(world: World) {
  return createGatewayClient({
    baseUrl: world.url,
    fetch(url, { headers, ...init }) {
      const own = { origin: ORIGIN, cookie: SIGNED_IN };
      return fetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(headers)), ...own } });
    },
  });
}

describe('aborting a generation', () => {
  it('before the headers ends the wait, not the generation', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    const held = Promise.withResolvers<Response>();
    world.upstream.on(CALL, () => held.promise);
    const abort = new AbortController();
    const generation = client.generate(ORDER, { signal: abort.signal });
    await world.upstream.arrived(CALL);
    abort.abort();
    const error = await rejection(generation);
    expect(error).toBeInstanceOf(DOMException);
    expect(error).toMatchObject({ name: 'AbortError' });
    await world.roundTrip();
    expect(world.upstream.last(CALL).signal.aborted).toBe(false);
    held.resolve(new Response('audio'));
  });

  it('is told with the reason that was given', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    const held = Promise.withResolvers<Response>();
    world.upstream.on(CALL, () => held.promise);
    const abort = new AbortController();
    const generation = client.generate(ORDER, { signal: abort.signal });
    await world.upstream.arrived(CALL);
    const reason = new Error('the user has left the page');
    abort.abort(reason);
    expect(await rejection(generation)).toBe(reason);
    held.resolve(new Response('audio'));
  });

  it('before it is sent sends nothing', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    const asked = world.upstream.calls.length;
    const signal = AbortSignal.abort();
    expect(await rejection(client.generate(ORDER, { signal }))).toMatchObject({ name: 'AbortError' });
    await world.roundTrip();
    expect(world.upstream.calls.slice(asked)).toEqual(['GET /v1/round-trip']);
  });

  it('in the middle of the audio ends the body with the reason, and the connection', async () => {
    await using world = startWorld(SHORT);
    const { client } = await openSignedIn(world);
    const givenUp = scriptEndlessAudio(world);
    const abort = new AbortController();
    const { body } = await client.generate(ORDER, { signal: abort.signal });
    const reader = body.getReader();
    expect((await reader.read()).value?.byteLength).toBe(1000);
    const next = reader.read();
    abort.abort();
    const error = await rejection(next);
    expect(error).toBe(abort.signal.reason);
    expect(error).toMatchObject({ name: 'AbortError' });
    await givenUp;
  });
});

describe('a body that is cancelled', () => {
  it('ends the connection', async () => {
    await using world = startWorld(SHORT);
    const givenUp = scriptEndlessAudio(world);
    const { body } = await clientOutsideOfPages(world).generate(ORDER);
    const reader = body.getReader();
    await reader.read();
    await reader.cancel();
    await givenUp;
  });

  it('passes the reason on', async () => {
    const reasons: unknown[] = [];
    const audio = new ReadableStream({ cancel: (reason) => void reasons.push(reason) });
    const client = createGatewayClient({ baseUrl: '', fetch: async () => new Response(audio) });
    const { body } = await client.generate(ORDER);
    await body.cancel('enough');
    expect(reasons).toEqual(['enough']);
  });
});

describe('audio that breaks off', () => {
  it('is a GatewayRequestError, after all that has come, and not safe to repeat', async () => {
    const sockets: { destroy(): void }[] = [];
    await using upstream = await startRawUpstream((socket, request) => {
      if (request.startsWith('POST /v1/music')) {
        sockets.push(socket);
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
      } else {
        const pair = '{"access_token":"access-1","refresh_token":"refresh-1","expires_in":60}';
        socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${pair.length}\r\nConnection: close\r\n\r\n${pair}`);
      }
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const { client } = await openSignedIn(world);
    const { body } = await client.generate(ORDER);
    const reader = body.getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('hello');
    for (const socket of sockets) socket.destroy();
    const error = await rejection(reader.read());
    expect(error).toMatchObject({
      name: 'GatewayRequestError',
      message: 'The connection to the gateway failed.',
      status: 0,
      retryIsSafe: false,
    });
    expect(error).toHaveProperty('cause.message');
  });

  it('is one too when the signal was there, but not aborted', async () => {
    const cause = new TypeError('network error');
    const audio = new ReadableStream({ pull: () => Promise.reject(cause) });
    const client = createGatewayClient({ baseUrl: '', fetch: async () => new Response(audio) });
    const { body } = await client.generate(ORDER, { signal: new AbortController().signal });
    const error = await rejection(body.getReader().read());
    expect(error).toMatchObject({ name: 'GatewayRequestError', status: 0, retryIsSafe: false });
    expect(error).toHaveProperty('cause', cause);
  });
});
