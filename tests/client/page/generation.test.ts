import { describe, expect, it } from 'bun:test';
import type { GenerationProgress } from '../../../src/client/generation.ts';
import type { GenerationOrder } from '../../../src/client/generation-order.ts';
import { NotAudioError } from '../../../src/client/not-audio-error.ts';
import { UnfinishedGenerations } from '../../../src/client/unfinished-generations.ts';
import type { GenerationRequest } from '../../../src/gateway/routes/schemas.ts';
import { lost, ORDER, openStorage, receive, rejection, respond, stubGateway } from './gateway-stub.ts';
import { audio, begun, TRACK } from './track.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

it('an order is sent as JSON without what is no part of it, under a new key each time or the one it is given', async () => {
  const order = { ...ORDER, force_instrumental: true, is_public: true } satisfies Required<GenerationOrder>;
  order satisfies GenerationRequest;
  const { client, sent } = stubGateway(respond(200, {}, TRACK));
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

describe('the progress of a generation', () => {
  it('begins with the order, grows with each piece, and keeps the time of the first byte', async () => {
    const pieces = new ReadableStream({
      start(controller) {
        for (const bytes of [1_000, 2_000]) controller.enqueue(new Uint8Array(bytes));
        controller.close();
      },
    });
    const seen: GenerationProgress[] = [];
    const began = performance.now();
    await receive(stubGateway(respond(200, {}, pieces)).client, { onProgress: (each) => seen.push(each) });
    const times = seen.map(({ elapsedMs }) => elapsedMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(times.at(-1)).toBeLessThanOrEqual(performance.now() - began);
    const first = times[2];
    const row = (each: GenerationProgress) => [each.state, each.bytes, each.totalBytes, each.firstByteMs];
    expect(seen.map(row)).toEqual([
      ['waiting', 0, undefined, undefined],
      ['arriving', 0, undefined, undefined],
      ['arriving', 1_000, undefined, first],
      ['arriving', 3_000, undefined, first],
      ['complete', 3_000, 3_000, first],
    ]);
  });

  it.each(['waiting', 'arriving', 'complete'])(
    'that cannot be shown as %s ends it and its connection with that error',
    async (shown) => {
      const bug = new TypeError('no such element');
      const { client, sent } = stubGateway(respond(200, {}, TRACK));
      const onProgress = ({ state }: GenerationProgress) => {
        if (state === shown) throw bug;
      };
      expect(await rejection(receive(client, { onProgress }))).toBe(bug);
      for (const { init } of sent) expect(init.signal?.reason).toBe(bug);
    },
  );
});

describe('a generation whose response is', () => {
  const LONG = `{"job_id":"${'7'.repeat(2_000)}"}`;
  it.each([
    ['application/json', '{"job_id":"7"}'],
    ['application/problem+json; charset=utf-8', LONG],
    ['Text/HTML', '<h1>Sign in</h1>'],
    ['application/xhtml+xml', '<html/>'],
  ])('%s is no audio, says so with its first kilobyte, and is not ordered again', async (type, body) => {
    const headers = { 'content-type': type, 'x-music-creation-id': 'c-7' };
    const { client, sent } = stubGateway(respond(200, headers, body));
    const unfinished = new UnfinishedGenerations('ada', openStorage());
    const states: string[] = [];
    const onProgress = ({ state }: GenerationProgress) => states.push(state);
    const error = await rejection(client.generate(ORDER, { unfinished, onProgress }));
    expect(error).toBeInstanceOf(NotAudioError);
    const details = { code: 'not_audio', contentType: type, creationId: 'c-7' };
    expect(error).toMatchObject({ ...details, beginning: body.slice(0, 1_024) });
    expect(String(error)).toContain(`not audio, but ${type}`);
    expect([states, unfinished.list()]).toEqual([['waiting'], []]);
    expect(sent.map(({ init }) => init.signal?.reason)).toEqual([error]);
  });

  it('a text that breaks off or stalls fails with what has arrived, unless it is aborted', async () => {
    const headers = { 'content-type': 'text/plain' };
    const page = Buffer.from('An error page');
    const order = (ending: 'breaks' | 'stalls') => {
      const { client } = stubGateway(({ signal }) => new Response(audio(page, ending, signal), { headers }));
      return rejection(client.generate(ORDER, { stallMs: 5 }));
    };
    for (const ending of ['breaks', 'stalls'] as const)
      expect(await order(ending)).toMatchObject({ code: 'not_audio', beginning: 'An error page' });
    const abort = new AbortController();
    const pull = () => {
      abort.abort('left');
      throw new TypeError('network error');
    };
    const { client } = stubGateway(() => new Response(new ReadableStream({ pull }), { headers }));
    expect(await rejection(client.generate(ORDER, { signal: abort.signal }))).toBe('left');
  });
});

it('a generation ends with the reason for which it is aborted, before the headers or while it arrives, or cancelled', async () => {
  const [before, meanwhile] = [new AbortController(), new AbortController()];
  const { client, sent } = stubGateway([begun(1_000, 'stalls'), begun(1_000, 'stalls'), lost]);
  const { body } = await client.generate(ORDER, { signal: meanwhile.signal });
  const read = rejection(new Response(body).bytes());
  meanwhile.abort('left');
  expect(await read).toBe('left');
  await (await client.generate(ORDER)).body.cancel('cancelled');
  expect(sent.map(({ init }) => init.signal?.reason)).toEqual(['left', 'cancelled']);
  const ordered = rejection(client.generate(ORDER, { signal: before.signal }));
  before.abort('left before');
  expect(await ordered).toBe('left before');
});
