import { describe, expect, it } from 'bun:test';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { LADDER } from '../../src/gateway/admission/ladder.ts';
import {
  ARRIVING_BODY_BYTES,
  CALL_BYTES,
  KEEPS_UP_BYTES,
  priceOfStream,
  UNKNOWN_CHANGE_BYTES,
} from '../../src/gateway/admission/prices.ts';
import { messages } from '../../src/gateway/http/messages.ts';
import { eventually } from '../support/eventually.ts';
import { expectOverloaded, send } from '../support/long-calls.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { BUFFERED, GENERATE, OWN_FORM, proxied, type RouteCase } from '../support/routes.ts';
import { envelopeMessage, startWorld, type World } from '../support/world.ts';

const BEHIND_BYTES = priceOfStream(Number.POSITIVE_INFINITY).behind;
const GET = proxied('GET');
const LARGE = 'x'.repeat(100_000);
const CHUNKED = 'Transfer-Encoding: chunked\r\n\r\n4e20\r\nsome';

/** A gateway in 256 MB, whose ledger has 192. */
function startSmall(environment: Record<string, string> = {}): World {
  return startWorld(environment, undefined, 256 * 1024 ** 2);
}

/** Not the stream of a Blob, whose length Bun declares. */
async function* chunksOfLarge() {
  for (let sent = 0; sent < LARGE.length; sent += 20_000) yield LARGE.slice(sent, sent + 20_000);
}

async function expectReleased({ admission: { ledger, streams } }: World, rest = 0): Promise<void> {
  await eventually(() => ledger.inUse === rest && !streams.inUse, 'everything to be released');
}

describe('memory is reserved', () => {
  it.each([
    ['of unknown length', CHUNKED, KEEPS_UP_BYTES],
    // It is there already, and arrives faster than it is read.
    ['of 50,000 bytes', 'Content-Length: 50000\r\n\r\nsome', 100_000],
    ['of 10 MB', 'Content-Length: 10000000\r\n\r\nsome', BEHIND_BYTES],
    // Neither says anything of the size.
    ['with two lengths', `${'Content-Length: 20000\r\n'.repeat(2)}\r\nsome`, KEEPS_UP_BYTES],
    ['with a length beside chunks', `Content-Length: 5\r\n${CHUNKED}`, KEEPS_UP_BYTES],
  ])('for a body %s when its head has arrived', async (_, head, bytes) => {
    await using upstream = await startRawUpstream((socket) => socket.write(`HTTP/1.1 200 OK\r\n${head}`));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await send(world, GET);
    expect(world.admission.ledger.inUse).toBe(CALL_BYTES + bytes);
    await response.body?.cancel();
    await expectReleased(world);
  });

  it.each([
    [8000, 'address of a generation', GENERATE, '?'.padEnd(8000, 'x'), {}],
    // The price of its response covers them.
    [0, 'fields of a HEAD', proxied('HEAD'), '', { 'x-padding': 'x'.repeat(7991) }],
  ])('with %d bytes for the %s', async (bytes, _, route, query, headers) => {
    await using world = startWorld();
    const { ledger } = world.admission;
    const inUse: number[] = [];
    world.upstream.on(route.calls.join(), () => {
      inUse.push(ledger.inUse);
      return new Response();
    });
    await send(world, route);
    await send(world, { ...route, path: route.path + query }, { headers });
    const [short = 0] = inUse;
    expect(inUse).toEqual([short, short + bytes]);
    await expectReleased(world);
  });

  it.each([
    ['whose length is declared', () => new Response(LARGE)],
    ['in chunks', () => new Response(chunksOfLarge())],
    [
      'which is encoded',
      () => new Response(Bun.gzipSync(LARGE), { headers: { 'content-encoding': 'gzip' } }),
    ],
  ])('twice for a large body of a read %s, which is otherwise refused', async (_, respond) => {
    await using world = startSmall();
    const { ledger, reads } = world.admission;
    const most = ledger.limit - CALL_BYTES - 2 * LARGE.length;
    ledger.take(most);
    for (const { calls, ...route } of BUFFERED) {
      world.upstream.on(calls.join(), respond);
      expect(await (await send(world, route)).text()).toBe(LARGE);
      await expectReleased(world, most);
      ledger.take(1);
      await expectOverloaded(await send(world, route));
      world.upstream.on(calls.join(), () => new Response('small'));
      expect((await send(world, route)).status).toBe(200);
      ledger.release(1);
      expect(reads.inUse).toBe(0);
    }
  });
});

describe('a ledger without room', () => {
  it('refuses no call whose client leaves while it waits', async () => {
    await using world = startSmall();
    const { ledger } = world.admission;
    ledger.take(ledger.limit * LADDER.user.share - 2 * CALL_BYTES);
    const client = new AbortController();
    const left = send(world, GET, { signal: client.signal }).catch(() => 'left');
    await eventually(() => ledger.someWait, 'the call to wait');
    client.abort();
    expect(await left).toBe('left');
    const line = await world.line({ clientGone: 'waiting' });
    expect([line?.['level'], line?.['reason'], line?.['pool'], ledger.refused]).toEqual([
      'info',
      undefined,
      undefined,
      0,
    ]);
  });

  it('for the body of a GET refuses it at its head, and the upstream is given up', async () => {
    const connected = Promise.withResolvers<Socket>();
    await using upstream = await startRawUpstream(connected.resolve);
    await using world = startSmall({ UPSTREAM_URL: upstream.url });
    const { ledger } = world.admission;
    const refused = send(world, GET);
    const socket = await connected.promise;
    const closed = new Promise((resolve) => void socket.on('close', resolve));
    const free = ledger.limit - ledger.inUse;
    ledger.take(free);
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\nsome');
    await expectOverloaded(await refused);
    await closed;
    await expectReleased(world, free);
  });

  it('refuses nothing that has changed something at the upstream: its head waits', async () => {
    await using world = startSmall();
    const { ledger } = world.admission;
    let taken = 0;
    world.upstream.on('POST /v1/library', () => {
      // The body of the request is kept for a refresh.
      expect(ledger.inUse).toBe(CALL_BYTES + UNKNOWN_CHANGE_BYTES + ARRIVING_BODY_BYTES);
      taken = ledger.limit - ledger.inUse;
      ledger.take(taken);
      return new Response('x'.repeat(1000).repeat(1000));
    });
    const changing = send(world, proxied('POST'));
    await eventually(() => taken > 0 && ledger.expected === 0, 'its head');
    ledger.release(taken);
    const changed = await changing;
    expect([changed.status, (await changed.bytes()).length]).toEqual([200, 1_000_000]);
    await expectReleased(world);
  });
});

const IDS = { 'x-generation-id': 'g1', 'x-music-creation-id': 'c1' };
const HEAD = 'HTTP/1.1 200 OK\r\nX-Generation-Id: g1\r\nX-Music-Creation-Id: c1\r\n';
/** More than the kernel buffers for a connection: it can be sent only when somebody reads it. */
const TRACK = Buffer.alloc(20_000_000, 'a');
const EARLY = { TIMEOUT_STREAM_MS: '1000', TIMEOUT_READ_MS: '100000' };

const readOut = (socket: Socket) => once(socket.end(TRACK.subarray(1)), 'finish');

it.each<
  [until: string, end: (upstream: Socket) => unknown, environment: Record<string, string>, route: RouteCase]
>([
  ['it has been read to its end for the library', readOut, {}, GENERATE],
  ['it has been read to its end, in its own form', readOut, {}, OWN_FORM],
  ['its upstream breaks off', (socket) => socket.resetAndDestroy(), {}, GENERATE],
  ['TIMEOUT_STREAM_MS is over', () => {}, EARLY, GENERATE],
])(
  'a generation at whose head the ledger is full gets 502 with its ids, and is in flight until %s',
  async (_, end, environment, route) => {
    const connected = Promise.withResolvers<Socket>();
    await using upstream = await startRawUpstream(connected.resolve);
    await using world = startSmall({ UPSTREAM_URL: upstream.url, ...environment });
    const { ledger, streams } = world.admission;
    const ordered = send(world, route);
    const socket = await connected.promise;
    const closed = new Promise((resolve) => void socket.on('close', resolve));
    const free = ledger.limit - ledger.inUse;
    ledger.take(free);
    socket.write(`${HEAD}Content-Length: ${TRACK.length}\r\n\r\n`);
    const refused = await ordered;
    const status = { 'proxy-status': 'music-gateway; error=http_response_incomplete' };
    expect(Object.fromEntries(refused.headers)).toMatchObject({ ...IDS, ...status });
    // It is paid for, and a client that repeats it might pay again.
    expect(refused.headers.has('retry-after')).toBeFalse();
    expect(await envelopeMessage(refused, 502)).toContain('Check your account activity');
    expect([streams.inUse, world.lines]).toEqual([1, []]);
    socket.write(TRACK.subarray(0, 1));
    await end(socket);
    await closed;
    await expectReleased(world, free);
    const made = { reason: 'generationNotStreamed', upstream: [{ call: 'music', outcome: 200 }] };
    expect(await world.line({ status: 502 })).toMatchObject(made);
  },
);

it('an order of its own form that the upstream refuses is no generation, though the ledger is full', async () => {
  await using world = startSmall({});
  const { ledger } = world.admission;
  let free = 0;
  world.upstream.on(OWN_FORM.calls.join(), () => {
    free = ledger.limit - ledger.inUse;
    ledger.take(free);
    return new Response('x'.repeat(100_000), { status: 402 });
  });
  // Not the gateway's 503, which says that nothing was sent.
  const refused = await send(world, OWN_FORM);
  expect(await envelopeMessage(refused, 402)).toBe(messages.en.generationFailed);
  await expectReleased(world, free);
});
