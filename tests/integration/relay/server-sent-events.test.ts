import { describe, expect, it, jest } from 'bun:test';
import { constants, createGzip } from 'node:zlib';
import { releasedBody } from '../../support/released-body.ts';
import { ACCESS_ONLY, startWorld, type World } from '../../support/world.ts';

const EVENTS = 'GET /v1/events';
/** Longer than half of the 60 s for which a body may be silent. */
const BEAT_MS = 50_000;

/** Opens a stream as a page's `EventSource` with credentials does, and reads its events and comments one by one. */
async function openEvents({ request }: World, acceptEncoding: string) {
  const headers = {
    accept: 'text/event-stream',
    'cache-control': 'no-cache',
    'accept-encoding': acceptEncoding,
    'last-event-id': '1',
  };
  const path = '/api/upstream/v1/events';
  const response = await request(path, { cookie: ACCESS_ONLY, headers, decompress: false });
  const decoded =
    response.headers.get('content-encoding') === 'gzip'
      ? response.body?.pipeThrough(new DecompressionStream('gzip'))
      : response.body;
  const reader = decoded?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    response,
    /** The next event as its lines. Undefined at the end. */
    async next(): Promise<string | undefined> {
      while (!text.includes('\n\n')) {
        const piece = await reader?.read();
        if (!piece?.value) return undefined;
        text += piece.value;
      }
      const end = text.indexOf('\n\n');
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      return event;
    },
  };
}

describe('server-sent events', () => {
  it.each(['identity', 'gzip, deflate, br, zstd'])(
    'pass at once and unbuffered, as they are encoded for Accept-Encoding: %s',
    async (acceptEncoding) => {
      await using world = startWorld();
      const body = releasedBody();
      const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
      gzip.on('data', body.release);
      world.upstream.on(EVENTS, ({ headers }) => {
        const isEncoded = headers.get('accept-encoding')?.includes('gzip') ?? false;
        const encoding = isEncoded ? { 'content-encoding': 'gzip' } : {};
        return new Response(body.stream, { headers: { 'content-type': 'text/event-stream', ...encoding } });
      });
      const isEncoded = acceptEncoding !== 'identity';
      const send = (text: string) => void (isEncoded ? gzip.write(text) : body.release(text));
      send('retry: 500\n\n');
      const events = await openEvents(world, acceptEncoding);
      const { status, headers } = events.response;
      expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream']);
      expect(headers.get('content-encoding')).toBe(isEncoded ? 'gzip' : null);
      expect(headers.has('content-length')).toBe(false);
      expect(await events.next()).toBe('retry: 500');
      // Each is read before the next one is sent.
      for (const event of ['id: 1\ndata: {"credits":97}', ': a comment', 'event: done\ndata: 2']) {
        send(`${event}\n\n`);
        expect(await events.next()).toBe(event);
      }
      const { headers: sent } = world.upstream.last(EVENTS);
      expect([sent.get('accept'), sent.has('last-event-id')]).toEqual(['text/event-stream', false]);
    },
  );

  it('go on for as long as a heartbeat comes within 60 s, and break off after a longer silence', async () => {
    jest.useFakeTimers();
    await using world = startWorld();
    const body = releasedBody();
    const headers = { 'content-type': 'text/event-stream' };
    world.upstream.on(EVENTS, () => new Response(body.stream, { headers }));
    body.release(': open\n\n');
    const events = await openEvents(world, 'identity');
    expect(await events.next()).toBe(': open');
    for (let beat = 0; beat < 4; beat++) {
      jest.advanceTimersByTime(BEAT_MS);
      body.release(': beat\n\n');
      expect(await events.next()).toBe(': beat');
    }
    const broken = events.next();
    jest.advanceTimersByTime(BEAT_MS);
    jest.advanceTimersByTime(BEAT_MS);
    await expect(broken).rejects.toThrow();
    await body.cancelled;
    expect(world.log.join()).toContain('stalled');
  });
});
