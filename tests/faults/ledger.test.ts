import { describe, expect, it } from 'bun:test';
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
const LARGE = 'x'.repeat(100_000);

/** A gateway in 256 MB, whose ledger has 192. */
function startSmall(environment: Record<string, string> = {}): World {
  return startWorld(environment, undefined, 256 * MiB);
}

async function expectReleased({ admission }: World): Promise<void> {
  await eventually(() => admission.ledger.inUse === 0, 'everything to be released');
  expect(admission.streams.inUse).toBe(0);
}

describe('memory is reserved', () => {
  it.each([
    ['a proxied GET', PROXY, 'GET', READ_AHEAD_BYTES],
    ['a proxied HEAD', PROXY, 'HEAD', 0],
    // The body of a request is kept for a refresh.
    ['a proxied POST', PROXY, 'POST', STREAMED_BODY_BYTES + 16 * 1024],
    ['public playback', PLAYBACK, 'GET', READ_AHEAD_BYTES],
    ['a generation', GENERATE, 'POST', 0],
  ])('for %s before it is sent', async (_, { call, send }, method, bytes) => {
    await using world = startWorld();
    const sent = call.replace(/^\w+/, method);
    const released = waiting(world, sent);
    const response = send(world, { method });
    await world.upstream.arrived(sent);
    expect(world.admission.ledger.inUse).toBe(CALL_BYTES + bytes);
    released.resolve();
    await (await response).text();
    await expectReleased(world);
  });

  it.each([
    ['of unknown length', 'Transfer-Encoding: chunked\r\n\r\n4e20\r\nsome', STREAMED_BODY_BYTES],
    ['of 50,000 bytes', 'Content-Length: 50000\r\n\r\nsome', 100_000],
    ['of 10 MB', 'Content-Length: 10000000\r\n\r\nsome', STREAMED_BODY_BYTES],
    // Neither says anything of the size.
    ['with two lengths', 'Content-Length: 20000\r\nContent-Length: 20000\r\n\r\nsome', STREAMED_BODY_BYTES],
    [
      'with a length beside chunks',
      'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\nsome',
      STREAMED_BODY_BYTES,
    ],
  ])('for a body %s when its head has arrived', async (_, head, bytes) => {
    await using upstream = await startRawUpstream((socket) => socket.write(`HTTP/1.1 200 OK\r\n${head}`));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await PROXY.send(world);
    expect(world.admission.ledger.inUse).toBe(CALL_BYTES + bytes);
    await response.body?.cancel();
    await expectReleased(world);
  });

  it.each([
    ['whose length is declared', () => new Response(LARGE)],
    ['in chunks', () => new Response(new Blob([LARGE]).stream())],
  ])('twice for a large body of models %s, which is otherwise refused', async (_, respond) => {
    await using world = startSmall();
    const { ledger, reads } = world.admission;
    world.upstream.on('GET /v1/models', respond).on('GET /v1/me', () => Response.json({}));
    const get = (path: string) => world.request(path, { cookie: ACCESS_ONLY });
    const most = ledger.limit * (3 / 4) - CALL_BYTES - 2 * LARGE.length;
    ledger.take(most);
    expect(await (await get('/api/music/models')).text()).toBe(LARGE);
    await eventually(() => ledger.inUse === most, 'the body to be sent');
    ledger.take(1);
    await expectRefused(await get('/api/music/models'));
    expect((await get('/api/auth/session')).status).toBe(200);
    expect(reads.inUse).toBe(0);
  });
});

describe('a ledger without room', () => {
  it('for the body of a GET refuses it at its head, and the upstream is given up', async () => {
    await using world = startSmall();
    const { ledger } = world.admission;
    const inUse = ledger.limit * (3 / 4) - CALL_BYTES - READ_AHEAD_BYTES;
    ledger.take(inUse);
    const cancelled = Promise.withResolvers<void>();
    world.upstream.on(PROXY.call, () => endless(cancelled.resolve));
    await expectRefused(await PROXY.send(world));
    await cancelled.promise;
    ledger.release(inUse);
    await expectReleased(world);
  });

  it('does not refuse the response to a call that has changed something', async () => {
    await using world = startSmall();
    world.upstream.on('POST /v1/slow', () => {
      fill(world.admission.ledger);
      return endless();
    });
    const changed = await PROXY.send(world, { method: 'POST' });
    expect(changed.status).toBe(200);
    await changed.body?.cancel();
  });

  it('lets calls of users wait for a moment, because heads of others free memory, but not those of strangers', async () => {
    await using world = startSmall();
    const { ledger, streams } = world.admission;
    for (const { call } of [PLAYBACK, PROXY]) world.upstream.on(call, () => new Response('done'));
    ledger.take(ledger.limit * (3 / 4));
    const waiting = [PROXY.send(world), PROXY.send(world)];
    await eventually(() => streams.inUse === 2, 'the calls to wait');
    await expectRefused(await PLAYBACK.send(world));
    expect(world.upstream.calls).toEqual([]);
    // One release may have room for all of them.
    ledger.release(2 * (CALL_BYTES + STREAMED_BODY_BYTES));
    for (const response of await Promise.all(waiting)) expect(await response.text()).toBe('done');
  });

  it('refuses an order that has arrived when no room is left for its audio', async () => {
    await using world = startSmall();
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
    fill(ledger, ledger.limit / 32 + STREAMED_BODY_BYTES / 2);
    arrived.resolve();
    await expectRefused(await generating);
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('a generation at whose head the ledger is full', () => {
  it('is read to its end for the library, and the client gets 503 with its ids', async () => {
    await using world = startSmall();
    const { ledger, streams } = world.admission;
    const rest = Promise.withResolvers<void>();
    let isRead = false;
    const pieces = async function* () {
      yield LARGE;
      await rest.promise;
      yield LARGE;
      isRead = true;
    };
    world.upstream.on(GENERATE.call, () => {
      fill(ledger);
      return new Response(pieces(), { headers: { 'x-generation-id': 'g1', 'x-music-creation-id': 'c1' } });
    });
    const refused = await GENERATE.send(world);
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      'retry-after': '5',
      // The call was made, unlike one that was refused for want of a place.
      'proxy-status': 'music-gateway; error=http_response_incomplete',
      'x-generation-id': 'g1',
      'x-music-creation-id': 'c1',
    });
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
    ['TIMEOUT_STREAM_MS is over', () => {}, { TIMEOUT_STREAM_MS: '1000' }],
  ])('is in flight until %s', async (_, end, environment) => {
    await using upstream = await startTrackUpstream();
    await using world = startSmall({ UPSTREAM_URL: upstream.url, ...environment });
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
