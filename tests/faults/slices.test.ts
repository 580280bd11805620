import { describe, expect, it, spyOn } from 'bun:test';
import { CALL_BYTES } from '../../src/gateway/admission/prices.ts';
import { PROXIED_PATH, PUBLIC } from '../support/routes.ts';
import type { Received, Respond } from '../support/scripted-upstream.ts';
import {
  accept,
  LOGOUT,
  ME,
  pair,
  REFRESH,
  refreshes,
  reply,
  signOut,
  silence,
} from '../support/session-calls.ts';
import { SIGNED_IN, startWorld, storedTokens, type World } from '../support/world.ts';

/** Of four slices, of which the first is a quarter of one. */
const TRACK_BYTES = 162_500;
const SLICE_BYTES = 50_000;
const CALL = 'GET /v1/library';
const ALL_SLICES = ['bytes=0-12499', 'bytes=12500-62499', 'bytes=62500-112499', 'bytes=112500-162499'];
const track = Uint8Array.from({ length: TRACK_BYTES }, (_, index) => (index * 31) % 251);

/** The range that a call asks for, of a track with a strong ETag. */
function rangeOf({ headers }: Received, changed: Record<string, string> = {}): Response {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.get('range') ?? '') ?? [];
  const end = last ? Number(last) + 1 : TRACK_BYTES;
  const range = { etag: '"a"', 'content-range': `bytes ${first}-${end - 1}/${TRACK_BYTES}` };
  const named = { 'content-type': 'audio/wav', ...range, ...changed };
  return new Response(track.slice(Number(first), end), { status: 206, headers: named });
}

/** `next` responds to the slices after the first one. */
function startSliced(next: Respond = rangeOf, environment: Record<string, string> = {}): World {
  const world = startWorld({ RELAY_SLICE_BYTES: String(SLICE_BYTES), ...environment });
  const respond = (received: Received) =>
    received.headers.get('range')?.startsWith('bytes=0-') ? rangeOf(received) : next(received);
  for (const call of [CALL, ...PUBLIC.calls]) world.upstream.on(call, respond);
  world.upstream.on(REFRESH, reply(200, pair(2))).on(LOGOUT, reply(204));
  return world;
}

function play(world: World, path = PROXIED_PATH): Promise<Response> {
  return world.request(path, { cookie: SIGNED_IN, headers: { range: 'bytes=0-' } });
}

/** Returns whether the response was broken off, and asserts that all of its bytes before that were right. */
async function isBroken(response: Response): Promise<boolean> {
  let size = 0;
  try {
    for await (const piece of response.body ?? []) {
      expect(piece).toEqual(track.subarray(size, size + piece.length));
      size += piece.length;
    }
  } catch (error) {
    expect(error).toMatchObject({ code: 'ECONNRESET' });
    expect(size).toBeLessThan(TRACK_BYTES);
    return true;
  }
  expect(size).toBe(TRACK_BYTES);
  return false;
}

const ranges = ({ upstream }: World) => upstream.received.map(({ headers }) => headers.get('range'));

describe('a range that is longer than a slice', () => {
  it.each([
    [PROXIED_PATH, 'proxy', 'Bearer access-1'],
    [PUBLIC.path, 'public', null],
  ])('is one response to the client, and slices to the upstream: %s', async (path, call, credentials) => {
    await using world = startSliced();
    const response = await play(world, path);
    expect(response.status).toBe(206);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-range': `bytes 0-${TRACK_BYTES - 1}/${TRACK_BYTES}`,
      'content-type': 'audio/wav',
      etag: '"a"',
    });
    expect(await isBroken(response)).toBe(false);
    expect(ranges(world)).toEqual(ALL_SLICES);
    for (const { headers } of world.upstream.received) {
      expect(headers.get('authorization')).toBe(credentials);
      expect(headers.get('cookie')).toBeNull();
      expect(Object.fromEntries(headers)).toMatchObject({
        'accept-encoding': 'identity',
        via: '1.1 music-gateway',
      });
    }
    const upstream = [{ call, outcome: 206 }];
    expect(await world.line({ slices: 4 })).toMatchObject({ status: 206, bytes: TRACK_BYTES, upstream });
    expect(world.lines).toHaveLength(1);
    expect(world.admission.ledger.inUse).toBe(0);
  });

  it('makes a GET without a range one of slices, too, and its response is all there is', async () => {
    await using world = startSliced();
    expect(await isBroken(await play(world))).toBe(false);
    world.upstream.received.length = 0;
    const response = await world.request(PROXIED_PATH, { cookie: SIGNED_IN });
    expect([response.status, response.headers.get('content-range'), response.headers.get('etag')]).toEqual([
      200,
      null,
      '"a"',
    ]);
    expect(await isBroken(response)).toBe(false);
    expect(ranges(world)).toEqual(ALL_SLICES);
  });

  it.each([
    ['continues', '"a"'],
    // The upstream has to be asked again for all of it.
    ['has no ETag', ''],
  ])('has one refresh, whose cookies are set, when its first slice %s', async (_, etag) => {
    await using world = startSliced(rangeOf, { REFRESH_REPLAY_SECONDS: '0' });
    world.upstream.on(CALL, (received) => accept('access-2', () => rangeOf(received, { etag }))(received));
    const response = await play(world);
    expect(storedTokens(response)).toEqual({ svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' });
    expect([await isBroken(response), refreshes(world)]).toEqual([false, 1]);
    const tokens = world.upstream.received.map(({ headers }) => headers.get('authorization'));
    expect(tokens.filter((token) => token === 'Bearer access-1')).toHaveLength(1);
  });
});

describe('a later slice', () => {
  // With any other fault, the body has the right bytes or breaks off: unit/fetch-sliced.test.ts.
  it.each<[what: string, next: Respond, cause: string]>([
    ['with the status 401', reply(401), 'SliceError status 401'],
    ['that is the whole track', () => new Response(track.slice()), 'SliceError length'],
    ['that does not come', silence, 'TimeoutError'],
  ])('%s breaks the connection, with one warning', async (_, next, cause) => {
    await using world = startSliced(next, { TIMEOUT_STREAM_MS: '1000' });
    expect(await isBroken(await play(world))).toBe(true);
    expect(await world.line({ level: 'warn' })).toMatchObject({ brokenBody: true, cause, slices: 2 });
    expect(world.log).toHaveLength(1);
    // No refresh either: its cookies could not be sent.
    expect(new Set(world.upstream.calls)).toEqual(new Set([CALL]));
    expect(world.admission.ledger.inUse).toBe(0);
  });

  it.each<[what: string, next: Respond, calls: number]>([
    ['has another ETag', (received) => rangeOf(received, { etag: '"b"' }), 1],
    ['is the whole of another track', () => new Response(track.slice(), { headers: { etag: '"b"' } }), 1],
    [
      'is of a track that has grown',
      (received) => rangeOf(received, { 'content-range': 'bytes 12500-62499/7' }),
      1,
    ],
    ['is behind the end of a shorter track', reply(416), 1],
    ['has the status 500', reply(500), ALL_SLICES.length],
  ])('that %s breaks the connection once', async (_, next, calls) => {
    const later = [next];
    await using world = startSliced((received) => (later.pop() ?? rangeOf)(received));
    expect(await isBroken(await play(world))).toBe(true);
    world.upstream.received.length = 0;
    let now = performance.now();
    using _clock = spyOn(performance, 'now').mockImplementation(() => now);
    expect(await isBroken(await play(world))).toBe(false);
    expect(ranges(world)).toEqual(calls === 1 ? ['bytes=0-'] : ALL_SLICES);
    // Others are not, nor is this one ten minutes later.
    for (const path of [PUBLIC.path, PROXIED_PATH]) {
      world.upstream.received.length = 0;
      expect(await isBroken(await play(world, path))).toBe(false);
      expect(ranges(world)).toEqual(ALL_SLICES);
      now += 600_001;
    }
  });

  it.each([401, 429, 503])(
    'with the status %i breaks a download once, and not the next one',
    async (status) => {
      await using world = startSliced();
      expect(await isBroken(await play(world))).toBe(false);
      const whole = () => new Response(track.slice(), { headers: { etag: '"a"' } });
      world.upstream.on(CALL, (received) => {
        const range = received.headers.get('range');
        if (range === null) return whole();
        return range.startsWith('bytes=0-') ? rangeOf(received) : new Response(null, { status });
      });
      const download = () => world.request(PROXIED_PATH, { cookie: SIGNED_IN });
      expect(await isBroken(await download())).toBe(true);
      expect(await isBroken(await download())).toBe(false);
      // A player comes back by range, and goes on in slices.
      world.upstream.on(CALL, rangeOf).received.length = 0;
      expect(await isBroken(await play(world))).toBe(false);
      expect(ranges(world)).toEqual(ALL_SLICES);
    },
  );

  it.each([
    ['is waited for', ['1'], false],
    ['is waited for at each slice', ['0', '', '0'], false],
    ['is waited for once', ['0', '0'], true],
    ['comes too late for a player', ['11'], true],
    ['has no number', ['soon'], true],
  ])('with 429 %s: Retry-After %j', async (_, waits, breaks) => {
    const left = [...waits];
    await using world = startSliced((received) => {
      const wait = left.shift();
      return wait ? new Response(null, { status: 429, headers: { 'retry-after': wait } }) : rangeOf(received);
    });
    expect(await isBroken(await play(world))).toBe(breaks);
    expect(left).toEqual([]);
  });

  it('has the newest access token of the session, looked up once a second because Redis is far', async () => {
    const released = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    const slices = () => world.upstream.received.filter(({ target }) => target === '/v1/library');
    const whenReleased = async (received: Received) => {
      await released[slices().length - 2]?.promise;
      return rangeOf(received);
    };
    await using world = startSliced(whenReleased, { RELAY_SLICE_BYTES: '40000' });
    world.upstream.on(ME, accept('access-2'));
    let now = performance.now();
    using _clock = spyOn(performance, 'now').mockImplementation(() => now);
    const response = await play(world);
    await world.upstream.arrived(CALL, 2);
    // What is on its way to the client, and the slice that is being fetched.
    expect(world.admission.ledger.inUse).toBe(CALL_BYTES + 2.5 * 40_000);
    expect((await world.request('/api/auth/session', { cookie: SIGNED_IN })).status).toBe(200);
    released[0]?.resolve();
    await world.upstream.arrived(CALL, 3);
    now += 1001;
    released[1]?.resolve();
    await world.upstream.arrived(CALL, 4);
    // No slice follows the next lookup.
    await signOut(world, SIGNED_IN);
    now += 1001;
    released[2]?.resolve();
    expect(await isBroken(response)).toBe(true);
    const tokens = slices().map(({ headers }) => headers.get('authorization'));
    expect(tokens).toEqual(['Bearer access-1', 'Bearer access-1', 'Bearer access-1', 'Bearer access-2']);
  });
});
