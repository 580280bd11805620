import { describe, expect, it } from 'bun:test';
import type { GenerationProgress } from '../../../src/client/generation.ts';
import type { GenerationOrder } from '../../../src/client/generation-order.ts';
import type { GenerationRequest } from '../../../src/gateway/routes/schemas.ts';
import type { World } from '../../support/world.ts';
import { rejection, respondWith, shareSignedIn } from './page.ts';

const CALL = 'POST /v1/music';
const ORDER = { model: 'm-1', prompt: 'rain on a tin roof', music_length_ms: 30_000 };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** An upstream that sends a piece of audio whenever the test gives one. */
function scriptAudio(world: World) {
  const audio = new TransformStream<Uint8Array, Uint8Array>();
  const writer = audio.writable.getWriter();
  world.upstream.on(CALL, () => new Response(audio.readable));
  return {
    give: (bytes: number) => writer.write(new Uint8Array(bytes)),
    end: () => writer.close(),
  };
}

async function readAll(body: ReadableStream<Uint8Array>): Promise<number> {
  return (await new Response(body).bytes()).length;
}

describe('an order', () => {
  const signedIn = shareSignedIn();

  it('is sent as JSON without what is no part of it, and its response says whose the audio is', async () => {
    const { world, client } = signedIn();
    const headers = { 'content-type': 'audio/wav', 'x-music-creation-id': 'c-7', 'x-generation-id': 'g-9' };
    world.upstream.on(CALL, () => new Response('audio', { headers }));
    const order = { ...ORDER, force_instrumental: true, is_public: true } satisfies Required<GenerationOrder>;
    order satisfies GenerationRequest;
    const form = { ...order, note: 'private', token: 't', toJSON: () => 'mine' };
    const { body, ...generation } = await client.generate(form);
    expect(generation).toEqual({ creationId: 'c-7', generationId: 'g-9', contentType: 'audio/wav' });
    expect(await new Response(body).text()).toBe('audio');
    expect(JSON.parse(world.upstream.last(CALL).body)).toEqual(order);
  });

  it('is read from the creation when the gateway has no memory for its audio', async () => {
    const { world, client } = signedIn();
    const orders = () => world.upstream.calls.filter((call) => call === CALL).length;
    const before = orders();
    const { ledger } = world.admission;
    const free = ledger.limit - ledger.inUse;
    world.upstream.on(CALL, () => {
      ledger.take(free);
      // So that the wait for the next attempt is not the one of `Retry-After`.
      setTimeout(() => globalThis.dispatchEvent(new Event('online')), 100);
      return new Response('audio', {
        headers: { 'x-music-creation-id': 'c-7', 'content-type': 'audio/wav' },
      });
    });
    const content = '/v1/music/creations/c-7/content';
    world.upstream.on(`GET ${content}`, () => {
      const headers = { 'content-range': 'bytes 0-4/5', 'content-type': 'audio/wav', etag: '"a"' };
      return new Response('audio', { status: 206, headers });
    });
    const states: string[] = [];
    const generating = client.generate(ORDER, { onProgress: ({ state }) => states.push(state) });
    await world.line({ reason: 'generationNotStreamed' });
    ledger.release(free);
    const { body, ...generation } = await generating;
    expect(generation).toEqual({ creationId: 'c-7', generationId: null, contentType: 'audio/wav' });
    expect(await new Response(body).text()).toBe('audio');
    expect(states).toEqual(['waiting', 'recovering', 'arriving', 'arriving', 'complete']);
    expect(world.upstream.last(`GET ${content}`).headers.get('range')).toStartWith('bytes=0-');
    expect(orders() - before).toBe(1);
  });

  it('yields MPEG audio without ids when the response does not say more', async () => {
    const { world, client } = signedIn();
    const audio = scriptAudio(world);
    audio.give(1);
    audio.end();
    const { body, ...generation } = await client.generate(ORDER);
    expect(generation).toEqual({ creationId: null, generationId: null, contentType: 'audio/mpeg' });
    expect(await readAll(body)).toBe(1);

    const empty = await respondWith(null, { status: 204 }).generate(ORDER);
    expect([empty.contentType, await readAll(empty.body)]).toEqual(['audio/mpeg', 0]);
  });

  it('has a new Idempotency-Key each time, or the one that it is given', async () => {
    const { world, client } = signedIn();
    world.upstream.on(CALL, () => new Response('audio'));
    const keys: string[] = [];
    for (const options of [undefined, {}, { idempotencyKey: 'mine' }, { idempotencyKey: 'mine' }]) {
      await readAll((await client.generate(ORDER, options)).body);
      keys.push(world.upstream.last(CALL).headers.get('idempotency-key') ?? '');
    }
    const [first, second, ...given] = keys;
    expect(first).toMatch(UUID);
    expect(second).toMatch(UUID);
    expect(second).not.toBe(first ?? '');
    expect(given).toEqual(['mine', 'mine']);
  });

  it('fails with the reason for which it was refused', async () => {
    const { world, client } = signedIn();
    world.upstream.on(CALL, () =>
      Response.json({ error: { message: 'Insufficient credits' } }, { status: 402 }),
    );
    const seen: string[] = [];
    const refused = client.generate(ORDER, { onProgress: ({ state }) => seen.push(state) });
    const error = await rejection(refused);
    expect(error).toMatchObject({ status: 402, message: 'Insufficient credits', retryIsSafe: true });
    expect(seen).toEqual(['waiting']);
    expect(await rejection(client.generate({ ...ORDER, prompt: ' ' }))).toMatchObject({ status: 400 });
  });
});

describe('the progress of a generation', () => {
  const signedIn = shareSignedIn();

  it('begins with the order, grows with each piece, and keeps the time of the first byte', async () => {
    const { world, client } = signedIn();
    const audio = scriptAudio(world);
    const seen: GenerationProgress[] = [];
    audio.give(1000);
    const began = performance.now();
    const { body } = await client.generate(ORDER, { onProgress: (progress) => seen.push(progress) });
    expect(seen).toMatchObject(
      ['waiting', 'arriving'].map((state) => ({ state, bytes: 0, firstByteMs: undefined })),
    );
    const reader = body.getReader();
    expect((await reader.read()).value?.byteLength).toBe(1000);
    expect(seen.at(-1)?.bytes).toBe(1000);
    audio.give(2000);
    expect((await reader.read()).value?.byteLength).toBe(2000);
    audio.give(3000);
    audio.end();
    while (!(await reader.read()).done);

    const pieces = seen.slice(2);
    expect(pieces.at(-1)).toMatchObject({ state: 'complete', bytes: 6000, totalBytes: 6000 });
    expect(pieces.map(({ bytes }) => bytes)).toEqual(pieces.map(({ bytes }) => bytes).sort((a, b) => a - b));
    const times = seen.map(({ elapsedMs }) => elapsedMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(times.at(-1)).toBeLessThanOrEqual(performance.now() - began);
    for (const { firstByteMs } of pieces) expect(firstByteMs).toBe(pieces[0]?.elapsedMs);
  });

  it('that cannot be shown fails the body with its own error, not as a broken connection', async () => {
    const bug = new TypeError('no such element');
    const { body } = await respondWith('audio').generate(ORDER, {
      onProgress({ bytes }) {
        if (bytes) throw bug;
      },
    });
    expect(await rejection(readAll(body))).toBe(bug);
  });
});
