import { describe, expect, it } from 'bun:test';
import { CALL_BYTES, STREAMED_BODY_BYTES } from '../../../src/gateway/settings/memory.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { releasedBody } from '../../support/released-body.ts';
import { GENERATE, TRACK } from '../../support/routes.ts';
import { FIRST_PIECE, startTrackUpstream } from '../../support/track-upstream.ts';
import { ACCESS_ONLY, REFRESH_ONLY, startWorld, type World } from '../../support/world.ts';

const ROUTE = GENERATE.path;

function order(world: World, client: AbortController, cookie = ACCESS_ONLY): Promise<Response> {
  return world.request(ROUTE, { cookie, json: TRACK, signal: client.signal });
}

/** Once later requests have been served, the gateway has noticed that the client has disconnected. */
async function disconnect(world: World, client: AbortController): Promise<void> {
  client.abort();
  for (let request = 0; request < 3; request++) await world.request('/api/health');
}

/** Starts a generation whose client has read the first piece. */
async function startPlaying(environment: Record<string, string> = {}, metrics?: Metrics) {
  const upstream = await startTrackUpstream();
  const world = startWorld({ UPSTREAM_URL: upstream.url, ...environment }, metrics);
  const client = new AbortController();
  const ordered = order(world, client);
  await upstream.arrived;
  upstream.sendHead();
  upstream.send(FIRST_PIECE);
  await (await ordered).body?.getReader().read();
  return {
    upstream,
    world,
    client,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

/** Memory is counted in that of calls; records of a refresh take less. */
function placesInUse({ admission }: World) {
  const { streams, ledger, perSession } = admission;
  return { streams: streams.inUse, calls: Math.floor(ledger.inUse / CALL_BYTES), sessions: perSession.size };
}

/** Waits for the line of the generation, and checks that it blames nobody and that all places are free again. */
async function expectEnded(world: World, values: Record<string, unknown>): Promise<void> {
  const line = await world.line({ route: ROUTE });
  expect(line).toMatchObject({ level: 'info', ...values });
  expect(line).not.toContainAnyKeys(['brokenBody', 'cause', 'reason']);
  await eventually(() => !world.admission.streams.inUse, 'the end of the generation');
  expect(placesInUse(world)).toEqual({ streams: 0, calls: 0, sessions: 0 });
}

describe('a generation whose client disconnects in the middle', () => {
  it('is read to its end, and is in flight until then', async () => {
    const metrics = new Metrics();
    await using playing = await startPlaying({}, metrics);
    const { upstream, world, client } = playing;
    const inFlight = async () =>
      (await samplesOf(metrics.registry)).get(`requests_in_flight{route="${ROUTE}"}`);
    await disconnect(world, client);
    expect(placesInUse(world)).toEqual({
      streams: 1,
      calls: 1 + STREAMED_BODY_BYTES / CALL_BYTES,
      sessions: 1,
    });
    expect(await inFlight()).toBe(1);
    expect(world.lines.filter(({ route }) => route === ROUTE)).toEqual([]);

    expect(await upstream.finish()).toBe(true);
    const calls = [{ call: 'music', outcome: 200 }];
    const bytes = FIRST_PIECE.length;
    await expectEnded(world, { status: 200, clientGone: 'streaming', bytes, upstream: calls });
    expect(await inFlight()).toBe(0);
  });

  it('does not count as a broken body when its upstream breaks off later', async () => {
    await using playing = await startPlaying();
    await disconnect(playing.world, playing.client);
    playing.upstream.breakOff();
    await expectEnded(playing.world, { status: 200, clientGone: 'streaming' });
  });

  it('is cancelled upstream when it lasts longer than TIMEOUT_STREAM_MS', async () => {
    await using playing = await startPlaying({ TIMEOUT_STREAM_MS: '1000' });
    const { upstream, world, client } = playing;
    const leftAt = performance.now();
    await disconnect(world, client);
    const dripping = setInterval(() => upstream.send('more'), 10);
    await upstream.closed;
    clearInterval(dripping);
    expect(performance.now() - leftAt).toBeGreaterThanOrEqual(1000);
    await expectEnded(world, { clientGone: 'streaming' });
  });
});

describe('a generation whose client disconnects before the audio', () => {
  it.each([
    ['before the head', false],
    ['between the head and the first byte', true],
  ])('is read to its end, and is in flight until then: %s', async (_, hasHead) => {
    await using upstream = await startTrackUpstream();
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const client = new AbortController();
    const ordered = order(world, client);
    await upstream.arrived;
    if (hasHead) upstream.sendHead();
    const outcome = ordered.then(
      () => 'response',
      () => 'none',
    );
    await disconnect(world, client);
    expect(await outcome).toBe('none');
    if (!hasHead) upstream.sendHead();
    upstream.send(FIRST_PIECE);
    await eventually(() => world.admission.ledger.inUse > STREAMED_BODY_BYTES, 'the first byte');
    await world.request('/api/health');
    expect(placesInUse(world)).toEqual({
      streams: 1,
      calls: 1 + STREAMED_BODY_BYTES / CALL_BYTES,
      sessions: 1,
    });
    expect(await upstream.finish()).toBe(true);
    const calls = [{ call: 'music', outcome: 200 }];
    await expectEnded(world, { clientGone: 'waiting', bytes: 0, upstream: calls });
  });
});

describe('a generation with a renewed session', () => {
  it.each(['waiting', 'streaming'])('is read to its end, too, when its client was %s', async (clientGone) => {
    await using world = startWorld();
    const body = releasedBody();
    const head = Promise.withResolvers<Response>();
    world.upstream
      .on('POST /v1/auth/refresh', () => Response.json({ access_token: 'a', refresh_token: 'r' }))
      .on('POST /v1/music', () => head.promise);
    const client = new AbortController();
    const ordered = order(world, client, REFRESH_ONLY);
    await world.upstream.arrived('POST /v1/music');
    const track = new Response(body.stream);
    body.release(FIRST_PIECE);
    if (clientGone === 'streaming') {
      head.resolve(track);
      await (await ordered).body?.getReader().read();
    }
    const left = ordered.catch(() => {});
    await disconnect(world, client);
    await left;
    head.resolve(track);
    await eventually(() => world.admission.ledger.inUse > STREAMED_BODY_BYTES, 'the first byte');
    expect(world.admission.streams.inUse).toBe(1);
    body.release('the rest');
    body.end();
    await expectEnded(world, { clientGone });
    expect(world.upstream.last('POST /v1/music').signal.aborted).toBe(false);
  });
});
