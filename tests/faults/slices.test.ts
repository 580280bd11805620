import { describe, expect, it, spyOn } from 'bun:test';
import { RefreshCoordinator } from '../../src/gateway/refresh/coordinator.ts';
import { CALL_BYTES } from '../../src/gateway/settings/memory.ts';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../support/metrics.ts';
import type { Received } from '../support/scripted-upstream.ts';
import { accept, cookies, LOGOUT, ME, pair, REFRESH, reply, silence } from '../support/session-calls.ts';
import { type RequestOptions, SIGNED_IN, startWorld, storedTokens, type World } from '../support/world.ts';

const TRACK_BYTES = 200_000;
const SLICE_BYTES = 50_000;
const SLICED = { RELAY_SLICE_BYTES: String(SLICE_BYTES) };
const PATH = '/v1/music/creations/1/content';
const CALL = `GET ${PATH}`;
const track = Uint8Array.from({ length: TRACK_BYTES }, (_, index) => (index * 31) % 251);

type Respond = (received: Received) => Response | Promise<Response>;

/** The range that a call asks for, of a track with a strong ETag. */
function rangeOf(
  { headers }: Pick<Received, 'headers'>,
  changed: Record<string, string> = {},
  encode = (bytes: Uint8Array<ArrayBuffer>) => bytes,
): Response {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.get('range') ?? '') ?? [];
  const end = Math.min(last ? Number(last) + 1 : TRACK_BYTES, TRACK_BYTES);
  return new Response(encode(track.slice(Number(first), end)), {
    status: 206,
    headers: {
      'content-type': 'audio/wav',
      'content-range': `bytes ${first}-${end - 1}/${TRACK_BYTES}`,
      etag: '"a"',
      ...changed,
    },
  });
}

/** `next` responds to the slices after the first one. */
function scriptTrack(world: World, next: Respond = rangeOf, call = CALL): void {
  world.upstream.on(call, (received) =>
    received.headers.get('range')?.startsWith('bytes=0-') ? rangeOf(received) : next(received),
  );
}

function play(world: World, options: RequestOptions = {}, path = PATH): Promise<Response> {
  const headers = { range: 'bytes=0-' };
  return world.request(`/api/upstream${path}`, { cookie: SIGNED_IN, headers, ...options });
}

/** The bytes up to a break. */
async function read(response: Response): Promise<{ bytes: Uint8Array; isBroken: boolean }> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of response.body ?? []) pieces.push(piece);
    return { bytes: Buffer.concat(pieces), isBroken: false };
  } catch {
    return { bytes: Buffer.concat(pieces), isBroken: true };
  }
}

function ranges({ upstream }: World): (string | null)[] {
  return upstream.received
    .filter(({ target }) => target.endsWith('/content'))
    .map(({ headers }) => headers.get('range'));
}

const ALL_SLICES = ['bytes=0-49999', 'bytes=50000-99999', 'bytes=100000-149999', 'bytes=150000-199999'];

describe('a range that is longer than a slice', () => {
  it.each([
    ['proxied', PATH, 'proxy', 'Bearer access-1'],
    ['public', '/v1/music/public/1/content', 'public', null],
  ])('is one response to the client, and slices to the upstream: %s', async (_, path, call, credentials) => {
    const metrics = new Metrics();
    await using world = startWorld(SLICED, metrics);
    scriptTrack(world, rangeOf, `GET ${path}`);
    const response = await play(world, {}, path);
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(`bytes 0-${TRACK_BYTES - 1}/${TRACK_BYTES}`);
    expect(response.headers.get('content-type')).toBe('audio/wav');
    expect(response.headers.get('etag')).toBe('"a"');
    expect(await read(response)).toEqual({ bytes: Buffer.from(track), isBroken: false });
    expect(ranges(world)).toEqual(ALL_SLICES);
    for (const { headers } of world.upstream.received) {
      expect(headers.get('authorization')).toBe(credentials);
      expect(headers.get('accept-encoding')).toBe('identity');
      expect(headers.get('via')).toBe('1.1 music-gateway');
      expect(headers.get('cookie')).toBeNull();
    }
    expect(await world.line({ slices: 4 })).toMatchObject({
      status: 206,
      bytes: TRACK_BYTES,
      upstream: [{ call, outcome: 206 }],
    });
    expect(world.lines).toHaveLength(1);
    const samples = await samplesOf(metrics.registry);
    expect(samples.get('slices_total{route="/api/upstream/*"}')).toBe(4);
    expect(samples.get(`upstream_seconds_count{call="${call}",outcome="2xx"}`)).toBe(1);
    expect(world.admission.ledger.inUse).toBe(0);
  });

  it('is asked again with a refresh when the token has expired in between', async () => {
    await using world = startWorld(SLICED);
    world.upstream.on(REFRESH, reply(200, pair(2)));
    world.upstream.on(CALL, (received) =>
      received.headers.get('range') === 'bytes=0-'
        ? accept('access-2', () => rangeOf(received, { etag: '' }))(received)
        : rangeOf(received, { etag: '' }),
    );
    const response = await play(world);
    expect(storedTokens(response)['svc_music_access']).toBe('access-2');
    expect((await read(response)).bytes).toEqual(Buffer.from(track));
  });

  it('is asked again with the renewed token, and sets no cookies after a sign-out', async () => {
    await using world = startWorld(SLICED);
    const whole = Promise.withResolvers<void>();
    world.upstream.on(REFRESH, reply(200, pair(2))).on(LOGOUT, reply(204));
    world.upstream.on(CALL, (received) =>
      accept('access-2', async () => {
        if (received.headers.get('range') === 'bytes=0-') await whole.promise;
        return rangeOf(received, { etag: '' });
      })(received),
    );
    const playing = play(world);
    await world.upstream.arrived(CALL, 3);
    await world.request('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    whole.resolve();
    const response = await playing;
    expect(response.headers.getSetCookie()).toEqual([]);
    expect((await read(response)).bytes).toEqual(Buffer.from(track));
    expect(world.upstream.calls.filter((call) => call === REFRESH)).toHaveLength(1);
  });
});

describe('a later slice', () => {
  // Every other fault of a later slice: unit/fetch-sliced.
  it.each<[what: string, next: Respond, cause: string]>([
    ['with the status 401', reply(401), 'SliceError status 401'],
    ['with another ETag', (received) => rangeOf(received, { etag: '"b"' }), 'SliceError etag'],
    ['that is the whole track', () => new Response(track.slice()), 'SliceError length'],
    [
      'that is encoded',
      (received) => rangeOf(received, { 'content-encoding': 'gzip' }, Bun.gzipSync),
      'SliceError encoding',
    ],
    ['that does not come', silence, 'TimeoutError'],
  ])('%s breaks the connection, with one warning', async (_, next, cause) => {
    await using world = startWorld({ ...SLICED, TIMEOUT_STREAM_MS: '1000' });
    scriptTrack(world, next);
    const { bytes, isBroken } = await read(await play(world));
    expect(isBroken).toBe(true);
    // The reset may overtake some of them.
    expect(bytes).toEqual(Buffer.from(track.slice(0, bytes.length)));
    expect(bytes.length).toBeLessThanOrEqual(SLICE_BYTES);
    expect(await world.line({ level: 'warn' })).toMatchObject({ brokenBody: true, cause, slices: 2 });
    expect(world.log).toHaveLength(1);
    // No refresh either: its cookies could not be sent.
    expect(new Set(world.upstream.calls)).toEqual(new Set([CALL]));
    expect(world.admission.ledger.inUse).toBe(0);
  });

  it('has a slice of memory, and the newest access token of the session', async () => {
    await using world = startWorld(SLICED);
    const renewed = Promise.withResolvers<void>();
    scriptTrack(world, async (received) => {
      await renewed.promise;
      return received.headers.get('authorization') === 'Bearer access-2' ? rangeOf(received) : reply(401)();
    });
    world.upstream.on(REFRESH, reply(200, pair(2))).on(ME, accept('access-2'));
    const response = await play(world);
    await world.upstream.arrived(CALL, 2);
    expect(world.admission.ledger.inUse).toBe(CALL_BYTES + SLICE_BYTES);
    // The slice in flight has the old token, so this track breaks, and the next one does not.
    expect((await world.request('/api/auth/session', { cookie: SIGNED_IN })).status).toBe(200);
    renewed.resolve();
    expect((await read(response)).isBroken).toBe(true);
    expect((await read(await play(world))).bytes).toEqual(Buffer.from(track));
  });

  it('asks for the newest access token once a second, because Redis would be asked for each slice', async () => {
    await using world = startWorld({ RELAY_SLICE_BYTES: '1000' });
    using newest = spyOn(RefreshCoordinator.prototype, 'newest');
    scriptTrack(world);
    const startedAt = performance.now();
    await read(await play(world));
    expect(ranges(world)).toHaveLength(TRACK_BYTES / 1000);
    expect(newest.mock.calls.length).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 1000);
  });

  it('has the access token that the first one was renewed with, whose cookies are set', async () => {
    await using world = startWorld({ ...SLICED, REFRESH_REPLAY_SECONDS: '0' });
    world.upstream.on(REFRESH, reply(200, pair(2)));
    world.upstream.on(CALL, (received) => accept('access-2', () => rangeOf(received))(received));
    const response = await play(world, { cookie: cookies(1) });
    expect(storedTokens(response)).toEqual({ svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' });
    expect((await read(response)).bytes).toEqual(Buffer.from(track));
    expect(world.upstream.calls.filter((call) => call === REFRESH)).toHaveLength(1);
  });

  it('is not asked for after a sign-out', async () => {
    await using world = startWorld(SLICED);
    const signedOut = Promise.withResolvers<void>();
    scriptTrack(world, (received) => signedOut.promise.then(() => rangeOf(received)));
    world.upstream.on(LOGOUT, reply(204));
    const response = await play(world);
    await world.upstream.arrived(CALL, 2);
    await world.request('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    // The token counts as the newest one for a second.
    await Bun.sleep(1100);
    signedOut.resolve();
    expect((await read(response)).isBroken).toBe(true);
    expect(ranges(world)).toHaveLength(2);
  });
});
