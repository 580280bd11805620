import { describe, expect, it } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import type { GenerationProgress } from '../../../src/client/generation.ts';
import { startWorld, type World } from '../../support/world.ts';
import { openSignedIn, recorded, rejection } from './page.ts';

const CALL = 'POST /v1/music';
const ORDER = { model: 'm-1', prompt: 'rain on a tin roof', music_length_ms: 30_000 };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** An upstream that gives a piece of audio whenever it is told to. */
function scriptAudio(world: World, headers: Record<string, string> = { 'content-type': 'audio/wav' }) {
  const audio = new TransformStream<Uint8Array, Uint8Array>();
  const writer = audio.writable.getWriter();
  // It fails when the reader goes away, as some tests want.
  writer.closed.catch(() => {});
  world.upstream.on(CALL, () => new Response(audio.readable, { headers }));
  return {
    give: (bytes: number) => writer.write(new Uint8Array(bytes)).catch(() => {}),
    end: () => writer.close(),
  };
}

async function readAll(body: ReadableStream<Uint8Array>): Promise<number> {
  return (await new Response(body).bytes()).length;
}

describe('ordering a track', () => {
  it('sends the order as JSON, and tells whose the audio is', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    const headers = { 'content-type': 'audio/wav', 'x-music-creation-id': 'c-7', 'x-generation-id': 'g-9' };
    world.upstream.on(CALL, () => new Response('audio', { headers }));
    const order = { ...ORDER, force_instrumental: true, is_public: true };
    const { body, ...generation } = await client.generate(order);
    expect(generation).toEqual({ creationId: 'c-7', generationId: 'g-9', contentType: 'audio/wav' });
    expect(await new Response(body).text()).toBe('audio');
    expect(JSON.parse(world.upstream.last(CALL).body)).toEqual(order);
  });

  it('has no ids, and MPEG audio, when the upstream does not tell', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    const audio = scriptAudio(world, {});
    audio.give(1);
    audio.end();
    const { creationId, generationId, contentType, body } = await client.generate(ORDER);
    expect([creationId, generationId, contentType]).toEqual([null, null, 'audio/mpeg']);
    expect(await readAll(body)).toBe(1);
  });

  it('has an empty body when the answer has none', async () => {
    const fetch = async () => new Response(null, { status: 204 });
    const { body, contentType } = await createGatewayClient({ baseUrl: '', fetch }).generate(ORDER);
    expect(await readAll(body)).toBe(0);
    expect(contentType).toBe('audio/mpeg');
  });

  it('takes a new Idempotency-Key each time, and the one that it is given', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
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

  it('sends nothing that is not part of an order', async () => {
    const { fetch, sent } = recorded(async () => new Response('audio'));
    const client = createGatewayClient({ baseUrl: 'http://gateway.test', fetch });
    const form = { ...ORDER, is_public: false, note: 'private', token: 't', toJSON: () => 'mine' };
    await client.generate(form);
    await client.generate(ORDER);
    expect(JSON.parse(String(sent[0]?.init.body))).toEqual({ ...ORDER, is_public: false });
    expect(JSON.parse(String(sent[1]?.init.body))).toEqual(ORDER);
  });

  it('tells why it was refused', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    world.upstream.on(CALL, () =>
      Response.json({ error: { message: 'Insufficient credits' } }, { status: 402 }),
    );
    const seen: GenerationProgress[] = [];
    const refused = client.generate(ORDER, { onProgress: (progress) => seen.push(progress) });
    const error = await rejection(refused);
    expect(error).toMatchObject({ status: 402, message: 'Insufficient credits', retryIsSafe: true });
    expect(seen).toEqual([]);
    expect(await rejection(client.generate({ ...ORDER, prompt: ' ' }))).toMatchObject({ status: 400 });
  });
});

describe('progress', () => {
  it('begins with the headers, grows with each piece, and keeps the time of the first byte', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    const audio = scriptAudio(world);
    const seen: GenerationProgress[] = [];
    audio.give(1000);
    const began = performance.now();
    const { body } = await client.generate(ORDER, { onProgress: (progress) => seen.push(progress) });
    expect(seen[0]).toMatchObject({ bytes: 0, firstByteMs: undefined });
    const reader = body.getReader();
    expect((await reader.read()).value?.byteLength).toBe(1000);
    expect(seen.at(-1)?.bytes).toBe(1000);
    audio.give(2000);
    expect((await reader.read()).value?.byteLength).toBe(2000);
    audio.give(3000);
    audio.end();
    while (!(await reader.read()).done);

    const [first, ...pieces] = seen;
    expect(first?.elapsedMs).toBeGreaterThan(0);
    expect(pieces.at(-1)?.bytes).toBe(6000);
    expect(pieces.map(({ bytes }) => bytes)).toEqual(pieces.map(({ bytes }) => bytes).sort((a, b) => a - b));
    const times = seen.map(({ elapsedMs }) => elapsedMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(times.at(-1)).toBeLessThanOrEqual(performance.now() - began);
    for (const { firstByteMs } of pieces) expect(firstByteMs).toBe(pieces[0]?.elapsedMs);
  });

  it('counts each byte once, however the audio is cut', async () => {
    const pieces = [1, 0, 700, 65_536, 3].map((length) => new Uint8Array(length));
    const fetch = async () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            const piece = pieces.shift();
            if (piece) controller.enqueue(piece);
            else controller.close();
          },
        }),
      );
    const seen: GenerationProgress[] = [];
    const client = createGatewayClient({ baseUrl: '', fetch });
    const { body } = await client.generate(ORDER, { onProgress: (progress) => seen.push(progress) });
    expect(await readAll(body)).toBe(66_240);
    expect(seen.at(-1)?.bytes).toBe(66_240);
  });

  it('that cannot be shown fails the body with its own error, not as a broken connection', async () => {
    const client = createGatewayClient({ baseUrl: '', fetch: async () => new Response('audio') });
    const bug = new TypeError('no such element');
    const { body } = await client.generate(ORDER, {
      onProgress({ bytes }) {
        if (bytes) throw bug;
      },
    });
    expect(await rejection(readAll(body))).toBe(bug);
  });
});
