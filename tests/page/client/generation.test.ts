import { describe, expect, it } from 'bun:test';
import type { GenerationProgress } from '../../../src/client/generation.ts';
import type { GenerationOrder } from '../../../src/client/generation-order.ts';
import type { GenerationRequest } from '../../../src/gateway/routes/schemas.ts';
import { ORDER, receive, rejection, respondWith, stubGateway } from './gateway-stub.ts';
import { begun } from './track.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('an order', () => {
  it('is sent as JSON without what is no part of it, under a new key each time or the one it is given', async () => {
    const order = { ...ORDER, force_instrumental: true, is_public: true } satisfies Required<GenerationOrder>;
    order satisfies GenerationRequest;
    const { client, sent } = stubGateway([() => new Response('audio')]);
    const form = { ...order, note: 'private', token: 't', toJSON: () => 'mine' };
    for (const options of [undefined, {}, { idempotencyKey: 'mine' }]) await receive(client, options, form);
    for (const { call, init, headers } of sent) {
      expect([call, headers.get('content-type')]).toEqual(['POST /api/music/generate', 'application/json']);
      expect(JSON.parse(String(init.body))).toEqual(order);
    }
    const [first, second, third] = sent.map(({ headers }) => headers.get('idempotency-key'));
    expect([first, second]).toEqual([expect.stringMatching(UUID), expect.stringMatching(UUID)]);
    expect([first === second, third]).toEqual([false, 'mine']);
  });

  it('yields the ids and the type of the response, or MPEG audio without ids', async () => {
    const headers = { 'content-type': 'audio/wav', 'x-music-creation-id': 'c-7', 'x-generation-id': 'g-9' };
    const known = { creationId: 'c-7', generationId: 'g-9', contentType: 'audio/wav' };
    expect(await receive(respondWith('audio', { headers }))).toMatchObject(known);
    const empty = await receive(respondWith(null, { status: 204 }));
    expect(empty).toMatchObject({ creationId: null, generationId: null, contentType: 'audio/mpeg' });
    expect(empty.audio).toHaveLength(0);
  });

  it('fails with the reason for which it was refused, and is not repeated', async () => {
    const { client, sent } = stubGateway([() => Response.json({ message: 'No credits' }, { status: 402 })]);
    const error = await rejection(client.generate(ORDER));
    expect(error).toMatchObject({ status: 402, message: 'No credits', retryIsSafe: true });
    expect(sent).toHaveLength(1);
  });
});

describe('the progress of a generation', () => {
  it('begins with the order, grows with each piece, and keeps the time of the first byte', async () => {
    const audio = new TransformStream<Uint8Array, Uint8Array>();
    const writer = audio.writable.getWriter();
    const seen: GenerationProgress[] = [];
    const began = performance.now();
    const { body } = await respondWith(audio.readable).generate(ORDER, {
      onProgress: (each) => seen.push(each),
    });
    const reader = body.getReader();
    for (const bytes of [1_000, 2_000]) {
      void writer.write(new Uint8Array(bytes));
      expect((await reader.read()).value?.byteLength).toBe(bytes);
    }
    void writer.close();
    expect((await reader.read()).done).toBe(true);
    expect(seen.map(({ state, bytes, totalBytes }) => [state, bytes, totalBytes])).toEqual([
      ['waiting', 0, undefined],
      ['arriving', 0, undefined],
      ['arriving', 1_000, undefined],
      ['arriving', 3_000, undefined],
      ['complete', 3_000, 3_000],
    ]);
    const times = seen.map(({ elapsedMs }) => elapsedMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(times.at(-1)).toBeLessThanOrEqual(performance.now() - began);
    const first = times[2];
    expect(seen.map(({ firstByteMs }) => firstByteMs)).toEqual([undefined, undefined, first, first, first]);
  });

  it.each(['waiting', 'arriving', 'complete'])(
    'that cannot be shown as %s ends it with that error',
    async (shown) => {
      const bug = new TypeError('no such element');
      const { client, sent } = stubGateway([() => new Response('audio')]);
      const onProgress = ({ state }: GenerationProgress) => {
        if (state === shown) throw bug;
      };
      expect(await rejection(receive(client, { onProgress }))).toBe(bug);
      // Nobody else can close the connection.
      for (const { init } of sent) expect(init.signal?.reason).toBe(bug);
    },
  );
});

describe('a generation that nobody wants any more', () => {
  it('fails with the reason when it is aborted before the headers', async () => {
    const abort = new AbortController();
    const { client } = stubGateway([
      () => {
        abort.abort('left');
        return Promise.reject(new TypeError('Failed to fetch'));
      },
    ]);
    expect(await rejection(client.generate(ORDER, { signal: abort.signal }))).toBe('left');
  });

  it('fails with the reason when it is aborted in the middle of the audio, and ends the connection', async () => {
    const abort = new AbortController();
    const { client, sent } = stubGateway([begun(1_000, 'stalls')]);
    const reader = (await client.generate(ORDER, { signal: abort.signal })).body.getReader();
    expect((await reader.read()).value?.byteLength).toBe(1_000);
    const next = rejection(reader.read());
    abort.abort('left');
    expect([await next, sent[0]?.init.signal?.reason]).toEqual(['left', 'left']);
  });

  it('ends the connection with the reason for which its body is cancelled', async () => {
    const { client, sent } = stubGateway([begun(10, 'stalls')]);
    await (await client.generate(ORDER)).body.cancel('enough');
    expect(sent[0]?.init.signal?.reason).toBe('enough');
  });
});
