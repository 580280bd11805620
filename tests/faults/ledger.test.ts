import { describe, expect, it, spyOn } from 'bun:test';
import { Budget } from '../../src/gateway/http/admission/budget.ts';
import { CALL_BYTES, READ_AHEAD_BYTES, STREAMED_BODY_BYTES } from '../../src/gateway/settings/memory.ts';
import { eventually } from '../support/eventually.ts';
import {
  endless,
  expectRefused,
  fill,
  GENERATE,
  PLAYBACK,
  PROXY,
  TRACK,
  waiting,
} from '../support/long-calls.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { startTrackUpstream } from '../support/track-upstream.ts';
import { ACCESS_ONLY, envelopeMessage, startWorld, type World } from '../support/world.ts';

type TrackUpstream = Awaited<ReturnType<typeof startTrackUpstream>>;

const MiB = 1024 ** 2;
/** Of the gateway in 256 MB. */
const LEDGER_BYTES = 192 * MiB;
const LARGE = 'x'.repeat(100_000);

/** A gateway in 256 MB, of whose ledger this share is in use. */
function startFilled(share: number): World {
  const world = startWorld({}, undefined, 256 * MiB);
  world.admission.ledger.take(LEDGER_BYTES * share);
  for (const { call } of [PLAYBACK, PROXY]) world.upstream.on(call, () => endless());
  return world;
}

async function* inOneChunk(text: string) {
  yield text;
}

function reserved({ admission }: World): number {
  return admission.ledger.inUse;
}

describe('memory is reserved', () => {
  it.each([
    ['a proxied GET', PROXY, {}, READ_AHEAD_BYTES],
    ['a proxied HEAD', PROXY, { method: 'HEAD' }, 0],
    ['public playback', PLAYBACK, {}, READ_AHEAD_BYTES],
    ['a call that changes something', PROXY, { method: 'POST' }, STREAMED_BODY_BYTES],
    ['a generation', GENERATE, {}, 0],
  ])('before %s is sent', async (_, { call, send }, options, bytes) => {
    await using world = startWorld();
    const method = (options as { method?: string }).method;
    const sent = method ? call.replace('GET', method) : call;
    const released = waiting(world, sent);
    const response = send(world, options);
    await world.upstream.arrived(sent);
    // The body of a request is kept for a refresh.
    const body = method === 'POST' ? 16 * 1024 : 0;
    expect(reserved(world)).toBe(CALL_BYTES + bytes + body);
    released.resolve();
    await (await response).text();
    await eventually(() => reserved(world) === 0, 'everything to be released');
  });

  it.each([
    ['of unknown length', () => endless(), STREAMED_BODY_BYTES],
    ['of 50,000 bytes', () => new Response('x'.repeat(50_000)), 100_000],
    ['in one piece', () => new Response('x'.repeat(100)), 100],
  ])('for a body %s, when its head has arrived', async (_, respond, bytes) => {
    await using world = startWorld();
    const heads: number[] = [];
    world.upstream.on(PROXY.call, respond);
    const { ledger } = world.admission;
    const release = ledger.release.bind(ledger);
    ledger.release = (amount) => {
      release(amount);
      heads.push(ledger.inUse);
    };
    const response = await PROXY.send(world);
    await response.body?.cancel();
    await eventually(() => reserved(world) === 0, 'everything to be released');
    // A body that costs more than was reserved is not released at its head.
    expect(bytes > READ_AHEAD_BYTES ? heads : heads.slice(0, 1)).toEqual(
      bytes > READ_AHEAD_BYTES ? [0] : [CALL_BYTES + bytes],
    );
  });

  it.each([
    ['whose length is declared', () => new Response(LARGE)],
    // Bun declares the length of a stream that it knows whole.
    ['in chunks', () => new Response(inOneChunk(LARGE))],
  ])('twice for a large body of models %s, which is otherwise refused', async (_, respond) => {
    await using world = startWorld({}, undefined, 256 * MiB);
    world.upstream.on('GET /v1/models', respond).on('GET /v1/me', () => Response.json({}));
    const models = () => world.request('/api/music/models', { cookie: ACCESS_ONLY });
    const { ledger, reads } = world.admission;
    expect(await (await models()).text()).toBe(LARGE);
    await eventually(() => reserved(world) === 0, 'the body to be sent');
    ledger.take(LEDGER_BYTES * (3 / 4) - CALL_BYTES - 2 * LARGE.length + 1);
    await expectRefused(await models());
    expect((await world.request('/api/auth/session', { cookie: ACCESS_ONLY })).status).toBe(200);
    expect(reads.inUse).toBe(0);
  });
});

it.each([
  ['repeated', 'Content-Length: 20000\r\nContent-Length: 20000', 'x'.repeat(20_000)],
  [
    'beside chunks',
    'Content-Length: 5\r\nTransfer-Encoding: chunked',
    `4e20\r\n${'x'.repeat(20_000)}\r\n0\r\n\r\n`,
  ],
])('a Content-Length that is %s says nothing of the size', async (_, lines, body) => {
  await using upstream = await startRawUpstream((socket) => {
    socket.end(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n${lines}\r\n\r\n${body}`);
  });
  await using world = startWorld({ UPSTREAM_URL: upstream.url });
  const { ledger } = world.admission;
  let most = 0;
  const take = ledger.take.bind(ledger);
  ledger.take = (amount) => {
    take(amount);
    most = Math.max(most, ledger.inUse);
  };
  expect(await (await PROXY.send(world)).text()).toHaveLength(20_000);
  await eventually(() => reserved(world) === 0, 'everything to be released');
  expect(most).toBe(CALL_BYTES + STREAMED_BODY_BYTES);
});

describe('a full ledger', () => {
  it('refuses strangers first', async () => {
    await using world = startFilled(1 / 2);
    // A stranger does not even wait for memory, as a user may.
    using take = spyOn(world.admission.ledger, 'take');
    await expectRefused(await PLAYBACK.send(world));
    expect(take).not.toHaveBeenCalled();
    expect(world.upstream.calls).toEqual([]);
    const track = await PROXY.send(world);
    expect(track.status).toBe(200);
    await track.body?.cancel();
  });

  it('refuses proxied calls next, with every method, before they are sent', async () => {
    await using world = startFilled(3 / 4);
    for (const method of ['GET', 'POST']) await expectRefused(await PROXY.send(world, { method }));
    expect(world.upstream.calls).toEqual([]);
    world.upstream.on('GET /v1/me', () => Response.json({})).on(GENERATE.call, () => new Response('audio'));
    expect((await world.request('/api/auth/session', { cookie: ACCESS_ONLY })).status).toBe(200);
    expect(await (await GENERATE.send(world)).text()).toBe('audio');
  });

  it('refuses a GET whose body does not fit at its head, and the upstream is given up', async () => {
    await using world = startFilled(0);
    const { ledger } = world.admission;
    ledger.take(LEDGER_BYTES * (3 / 4) - CALL_BYTES - READ_AHEAD_BYTES);
    const cancelled = Promise.withResolvers<void>();
    world.upstream.on(PROXY.call, () => endless(cancelled.resolve));
    await expectRefused(await PROXY.send(world));
    await cancelled.promise;
    expect(world.admission.streams.inUse).toBe(0);
    world.upstream.on(PROXY.call, () => Response.json({ small: true }));
    expect((await PROXY.send(world)).status).toBe(200);
  });

  it('does not refuse the response to a call that has changed something', async () => {
    await using world = startFilled(0);
    world.upstream.on('POST /v1/slow', () => {
      fill(world.admission.ledger);
      return endless();
    });
    const changed = await PROXY.send(world, { method: 'POST' });
    expect(changed.status).toBe(200);
    await changed.body?.cancel();
  });

  it('lets calls wait for a moment, because heads of others free memory', async () => {
    await using world = startFilled(3 / 4);
    const { ledger } = world.admission;
    const waiting = [PROXY.send(world), PROXY.send(world)];
    await eventually(() => world.admission.streams.inUse === 2, 'the calls to wait');
    expect(world.upstream.calls).toEqual([]);
    // One release may have room for all of them.
    ledger.release(2 * (CALL_BYTES + STREAMED_BODY_BYTES));
    await world.upstream.arrived(PROXY.call, 2);
    for (const track of await Promise.all(waiting)) {
      expect(track.status).toBe(200);
      await track.body?.cancel();
    }
  });

  it('lets no more than 500 wait, because each keeps its memory meanwhile', async () => {
    const budget = new Budget(500);
    budget.take(499);
    await expect(budget.reserve(2, 0)).rejects.toThrow();
    budget.take(1);
    const waiting = Array.from({ length: 500 }, () => budget.reserve(1, 60_000));
    await expect(budget.reserve(1, 60_000)).rejects.toThrow();
    budget.release(500);
    await Promise.all(waiting);
    expect(budget.inUse).toBe(500);
  });

  it('refuses an order before it is sent', async () => {
    await using world = startFilled(1);
    await expectRefused(await GENERATE.send(world));
    expect(world.upstream.calls).toEqual([]);
  });

  it('refuses an order that has arrived when no room is left for its audio', async () => {
    await using world = startFilled(0);
    const { ledger, requestBodies } = world.admission;
    const arrived = Promise.withResolvers<void>();
    const order = async function* () {
      yield Buffer.from(JSON.stringify(TRACK).slice(0, 10));
      await arrived.promise;
      yield Buffer.from(JSON.stringify(TRACK).slice(10));
    };
    const headers = { 'content-type': 'application/json' };
    const generating = GENERATE.send(world, { method: 'POST', headers, body: order() });
    await eventually(() => requestBodies.usedBytes, 'the order to arrive');
    // Besides its audio, a thirty-second is left for calls.
    fill(ledger, LEDGER_BYTES / 32 + STREAMED_BODY_BYTES / 2);
    arrived.resolve();
    await expectRefused(await generating);
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('a generation at whose head the ledger is full', () => {
  it('is read to its end for the library, and the client gets 503 with its ids', async () => {
    await using world = startFilled(0);
    const { ledger, streams } = world.admission;
    const rest = Promise.withResolvers<void>();
    let isRead = false;
    world.upstream.on(GENERATE.call, () => {
      fill(ledger);
      const pieces = async function* () {
        yield LARGE;
        await rest.promise;
        yield LARGE;
        isRead = true;
      };
      const headers = { 'x-generation-id': 'g1', 'x-music-creation-id': 'c1' };
      return new Response(pieces(), { headers });
    });
    const refused = await world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: TRACK });
    expect(refused.headers.get('retry-after')).toBe('5');
    // The call was made, unlike one that was refused for want of a place.
    expect(refused.headers.get('proxy-status')).toBe('music-gateway; error=http_response_incomplete');
    expect(refused.headers.get('x-generation-id')).toBe('g1');
    expect(refused.headers.get('x-music-creation-id')).toBe('c1');
    expect(await envelopeMessage(refused, 503)).toContain('in your library');
    expect(streams.inUse).toBe(1);
    expect(world.lines).toEqual([]);
    rest.resolve();
    await eventually(() => streams.inUse === 0, 'the generation to end');
    expect(isRead).toBe(true);
    expect(await world.line({ status: 503 })).toMatchObject({
      reason: 'generationNotStreamed',
      upstream: [{ call: 'music', outcome: 200 }],
    });
  });

  it.each([
    ['its upstream breaks off', (upstream: TrackUpstream) => upstream.breakOff(), {}],
    ['TIMEOUT_STREAM_MS is over', () => {}, { TIMEOUT_STREAM_MS: '300' }],
  ])('is in flight until %s', async (_, end, environment) => {
    await using upstream = await startTrackUpstream();
    await using world = startWorld({ UPSTREAM_URL: upstream.url, ...environment }, undefined, 256 * MiB);
    const { ledger, streams } = world.admission;
    const ordered = GENERATE.send(world);
    await upstream.arrived;
    const free = ledger.limit - ledger.inUse;
    ledger.take(free);
    upstream.sendHead();
    await envelopeMessage(await ordered, 503);
    expect(streams.inUse).toBe(1);
    end(upstream);
    await upstream.closed;
    await eventually(() => streams.inUse === 0, 'the generation to end');
    expect(ledger.inUse).toBe(free);
  });
});

it('one session uses a quarter of the ledger for its bodies, and beyond a sixteenth no audio of a generation is streamed', async () => {
  await using world = startFilled(0);
  world.upstream.on(GENERATE.call, () => new Response('audio'));
  const most = Math.floor(LEDGER_BYTES / 4 / STREAMED_BODY_BYTES);
  const tracks: Response[] = [];
  for (let count = 0; count < most; count++) tracks.push(await PROXY.send(world));
  expect(new Set(tracks.map(({ status }) => status))).toEqual(new Set([200]));
  await expectRefused(await PROXY.send(world), 429);
  expect(await envelopeMessage(await GENERATE.send(world), 503)).toContain('in your library');
  const other = await PROXY.send(world, { cookie: 'svc_music_access=other' });
  expect(other.status).toBe(200);
  for (const track of [...tracks, other]) await track.body?.cancel();
});
