import { expect, it } from 'bun:test';
import { CALL_BYTES, STREAMED_BODY_BYTES } from '../../../src/gateway/settings/memory.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { GENERATE, TRACK } from '../../support/routes.ts';
import { pair, REFRESH } from '../../support/session-calls.ts';
import { ACCESS_ONLY, REFRESH_ONLY, startWorld, type World } from '../../support/world.ts';

const MUSIC = 'POST /v1/music';
const IN_FLIGHT = `requests_in_flight{route="${GENERATE.path}"}`;
const PIECE = new Uint8Array(64 * 1024);
/** More than the kernel buffers for a connection: all of it is sent only when somebody reads it. */
const PIECES = 300;

/** A track whose first piece is sent at once. */
function startTrack() {
  const released = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<'read to its end' | 'cancelled'>();
  let pieces = 0;
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (pieces === 1) await released.promise;
      if (pieces++ < PIECES) return controller.enqueue(PIECE.slice());
      controller.close();
      ended.resolve('read to its end');
    },
    cancel: () => ended.resolve('cancelled'),
  });
  return { response: new Response(stream), release: () => released.resolve(), ended: ended.promise };
}

/** Orders a track and disconnects. Once later requests have been served, the gateway has noticed it. */
async function leave(world: World, cookie: string, whenStreaming: boolean): Promise<void> {
  const client = new AbortController();
  const ordered = world.request(GENERATE.path, { cookie, json: TRACK, signal: client.signal });
  await world.upstream.arrived(MUSIC);
  if (whenStreaming) await (await ordered).body?.getReader().read();
  client.abort();
  await ordered.catch(() => {});
  for (let request = 0; request < 3; request++) await world.request('/api/health');
}

// How much memory that takes: faults/left-generations.test.ts.
it.each([
  ['in the middle', ACCESS_ONLY],
  ['in the middle', REFRESH_ONLY],
  ['before the audio', ACCESS_ONLY],
  ['before the audio', REFRESH_ONLY],
])(
  'a generation whose client disconnects %s is read to its end, and is in flight until then: %s',
  async (when, cookie) => {
    const isStreaming = when === 'in the middle';
    const metrics = new Metrics();
    await using world = startWorld({}, metrics);
    const { streams, ledger, perSession } = world.admission;
    const track = startTrack();
    const head = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => Response.json(pair(2))).on(MUSIC, () => head.promise);
    if (isStreaming) head.resolve(track.response);
    await leave(world, cookie, isStreaming);
    head.resolve(track.response);
    await eventually(() => ledger.inUse >= CALL_BYTES + STREAMED_BODY_BYTES, 'the first byte');
    expect([streams.inUse, perSession.size]).toEqual([1, 1]);
    expect((await samplesOf(metrics.registry)).get(IN_FLIGHT)).toBe(1);
    expect(world.lines.filter(({ route }) => route === GENERATE.path)).toEqual([]);

    track.release();
    expect(await track.ended).toBe('read to its end');
    const line = await world.line({ route: GENERATE.path });
    const upstream = expect.arrayContaining([expect.objectContaining({ call: 'music', outcome: 200 })]);
    expect(line).toMatchObject({
      level: 'info',
      clientGone: isStreaming ? 'streaming' : 'waiting',
      upstream,
    });
    expect(line).not.toContainAnyKeys(['brokenBody', 'cause', 'reason']);
    await eventually(() => !streams.inUse, 'the end of the generation');
    expect(perSession.size).toBe(0);
    // What is left is the record of a refresh.
    expect(ledger.inUse).toBeLessThan(CALL_BYTES);
    expect((await samplesOf(metrics.registry)).get(IN_FLIGHT)).toBe(0);
  },
);

it('a generation whose client has disconnected is cancelled upstream after TIMEOUT_STREAM_MS', async () => {
  await using world = startWorld({ TIMEOUT_STREAM_MS: '1000' });
  const track = startTrack();
  world.upstream.on(MUSIC, () => track.response);
  await leave(world, ACCESS_ONLY, true);
  expect(await track.ended).toBe('cancelled');
  expect(await world.line({ route: GENERATE.path })).toMatchObject({
    level: 'info',
    clientGone: 'streaming',
  });
});
