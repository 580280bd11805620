import { describe, expect, it } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import type { GenerationProgress } from '../../../src/client/generation.ts';
import { ORIGIN, SIGNED_IN, type World } from '../../support/world.ts';
import { openBreaking, openSignedIn, recorded, rejection, respondWith } from './page.ts';

const CALL = 'POST /v1/music';
const ORDER = { model: 'm-1', prompt: 'rain on a tin roof', music_length_ms: 30_000 };
/** Without an id of the creation, the rest cannot be read. */
const BROKEN = { name: 'RecoveryError', code: 'gave_up', creationId: null };
/** How long the gateway reads paid audio after its client has gone. */
const SHORT = { TIMEOUT_STREAM_MS: '300' };

/** An upstream whose audio never ends; resolves when nobody reads it any more. */
function scriptEndlessAudio({ upstream }: World): Promise<void> {
  const cancelled = Promise.withResolvers<void>();
  const start = (controller: ReadableStreamDefaultController) => controller.enqueue(new Uint8Array(1000));
  upstream.on(CALL, () => new Response(new ReadableStream({ start, cancel: () => cancelled.resolve() })));
  return cancelled.promise;
}

describe('a generation that is aborted', () => {
  it('before the headers fails with its reason, and goes on at the upstream', async () => {
    const reason = new Error('the user has left the page');
    await using opened = await openSignedIn();
    const { world, client } = opened;
    const late = Promise.withResolvers<Response>();
    world.upstream.on(CALL, () => late.promise);
    const abort = new AbortController();
    const generation = client.generate(ORDER, { signal: abort.signal });
    await world.upstream.arrived(CALL);
    abort.abort(reason);
    const error = await rejection(generation);
    expect(error).toBe(reason);
    await world.roundTrip();
    expect(world.upstream.last(CALL).signal.aborted).toBe(false);
    late.resolve(new Response('audio'));
  });

  it('before it is sent is not sent', async () => {
    await using opened = await openSignedIn();
    const { world, client } = opened;
    const signal = AbortSignal.abort();
    expect(await rejection(client.generate(ORDER, { signal }))).toMatchObject({ name: 'AbortError' });
    await world.roundTrip();
    expect(world.upstream.calls).not.toContain(CALL);
  });

  it('in the middle of the audio ends the body with the reason, and the connection', async () => {
    await using opened = await openSignedIn(SHORT);
    const ended = scriptEndlessAudio(opened.world);
    const abort = new AbortController();
    const { body } = await opened.client.generate(ORDER, { signal: abort.signal });
    const reader = body.getReader();
    expect((await reader.read()).value?.byteLength).toBe(1000);
    const next = reader.read();
    abort.abort();
    const error = await rejection(next);
    expect(error).toBe(abort.signal.reason);
    expect(error).toMatchObject({ name: 'AbortError' });
    await ended;
  });
});

describe('a generation whose caller fails', () => {
  it('when the audio begins fails with that error, and ends the connection', async () => {
    const mine = new Error('the page cannot show it');
    const { fetch, sent } = recorded(async () => new Response('audio'));
    const client = createGatewayClient({ baseUrl: 'http://gateway.test', fetch });
    const onProgress = ({ state }: GenerationProgress) => {
      if (state === 'arriving') throw mine;
    };
    expect(await rejection(client.generate(ORDER, { onProgress }))).toBe(mine);
    expect(sent.map(({ init }) => init.signal?.reason)).toEqual([mine]);
  });
});

describe('the body of a generation', () => {
  it('ends the connection when it is cancelled', async () => {
    await using opened = await openSignedIn(SHORT);
    const ended = scriptEndlessAudio(opened.world);
    const headers = { origin: ORIGIN, cookie: SIGNED_IN };
    // happy-dom goes on reading a body that was cancelled; this is Bun's own fetch.
    const client = createGatewayClient({
      baseUrl: opened.world.url,
      fetch: (url, init) =>
        fetch(url, { ...init, headers: [...new Headers(init.headers), ...Object.entries(headers)] }),
    });
    const reader = (await client.generate(ORDER)).body.getReader();
    await reader.read();
    await reader.cancel();
    await ended;
  });

  it('passes on the reason for which it is cancelled', async () => {
    const { fetch, sent } = recorded(async () => new Response(new ReadableStream()));
    const client = createGatewayClient({ baseUrl: 'http://gateway.test', fetch });
    await (await client.generate(ORDER)).body.cancel('enough');
    expect(sent[0]?.init.signal?.reason).toBe('enough');
  });

  it('fails after all that has arrived when the connection breaks', async () => {
    await using opened = await openBreaking('\r\n5\r\nhello\r\n');
    const reader = (await opened.client.generate(ORDER)).body.getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('hello');
    opened.breakOff();
    const error = await rejection(reader.read());
    expect(error).toMatchObject(BROKEN);
    expect(error).toHaveProperty('cause.message', 'The connection to the gateway failed.');
  });

  it('fails with the same error when its signal is there, but not aborted', async () => {
    const cause = new TypeError('network error');
    const audio = new ReadableStream({ pull: () => Promise.reject(cause) });
    const { signal } = new AbortController();
    const { body } = await respondWith(audio).generate(ORDER, { signal });
    const error = await rejection(body.getReader().read());
    expect(error).toMatchObject(BROKEN);
    expect(error).toHaveProperty('cause.cause', cause);
  });
});
