import { describe, expect, it } from 'bun:test';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../support/metrics.ts';
import { releasedBody } from '../support/released-body.ts';
import { FIRST_PIECE, startTrackUpstream } from '../support/track-upstream.ts';
import { ACCESS_ONLY, REFRESH_ONLY, startWorld, type World } from '../support/world.ts';

const ROUTE = '/api/music/generate';
const GENERATE = { model: 'm', prompt: 'p', music_length_ms: 3000 };

function order(world: World, client: AbortController, cookie = ACCESS_ONLY): Promise<Response> {
  return world.request(ROUTE, { cookie, json: GENERATE, signal: client.signal });
}

/** Once later requests have been served, the gateway has noticed that the client has gone. */
async function leave(world: World, client: AbortController): Promise<void> {
  client.abort();
  for (let request = 0; request < 3; request++) await world.request('/api/health');
}

function placesInUse({ admission }: World) {
  const { streams, streamedBodies, perSession } = admission;
  return { streams: streams.inUse, streamedBodies: streamedBodies.inUse, tokens: perSession.size };
}

async function expectNothingInFlight(world: World): Promise<void> {
  while (world.admission.streams.inUse) await Bun.sleep(1);
  expect(placesInUse(world)).toEqual({ streams: 0, streamedBodies: 0, tokens: 0 });
}

describe('a generation whose client goes away in the middle', () => {
  it('is read to its end, and is in flight until then', async () => {
    await using upstream = await startTrackUpstream();
    const metrics = new Metrics();
    await using world = startWorld({ UPSTREAM_URL: upstream.url }, metrics);
    const inFlight = async () =>
      (await samplesOf(metrics.registry)).get(`requests_in_flight{route="${ROUTE}"}`);
    const client = new AbortController();
    const ordered = order(world, client);
    await upstream.arrived;
    upstream.sendHead();
    upstream.send(FIRST_PIECE);
    const response = await ordered;
    await response.body?.getReader().read();
    await leave(world, client);
    expect(placesInUse(world)).toEqual({ streams: 1, streamedBodies: 1, tokens: 1 });
    expect(await inFlight()).toBe(1);
    expect(world.lines.filter(({ route }) => route === ROUTE)).toEqual([]);

    expect(await upstream.finish()).toBe(true);
    const line = await world.line({ route: ROUTE });
    expect(line).toMatchObject({
      level: 'info',
      status: 200,
      clientGone: 'streaming',
      bytes: FIRST_PIECE.length,
      upstream: [{ call: 'music', outcome: 200 }],
    });
    expect(line).not.toContainAnyKeys(['brokenBody', 'cause', 'reason']);
    await expectNothingInFlight(world);
    expect(await inFlight()).toBe(0);
  });

  it('is read to its end when its session was renewed for it', async () => {
    await using world = startWorld();
    const body = releasedBody();
    world.upstream
      .on('POST /v1/auth/refresh', () => Response.json({ access_token: 'a', refresh_token: 'r' }))
      .on('POST /v1/music', () => new Response(body.stream));
    body.release(FIRST_PIECE);
    const client = new AbortController();
    const response = await order(world, client, REFRESH_ONLY);
    expect(response.headers.getSetCookie()).toHaveLength(2);
    await response.body?.getReader().read();
    await leave(world, client);
    expect(world.admission.streams.inUse).toBe(1);
    body.release('the rest');
    body.end();
    const line = await world.line({ route: ROUTE });
    expect(line).toMatchObject({ clientGone: 'streaming', bytes: FIRST_PIECE.length });
    expect(world.upstream.last('POST /v1/music').signal.aborted).toBe(false);
    await expectNothingInFlight(world);
  });

  it('does not count as a broken body when its upstream breaks off later', async () => {
    await using upstream = await startTrackUpstream();
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const client = new AbortController();
    const ordered = order(world, client);
    await upstream.arrived;
    upstream.sendHead();
    upstream.send(FIRST_PIECE);
    await (await ordered).body?.getReader().read();
    await leave(world, client);
    upstream.breakOff();
    const line = await world.line({ route: ROUTE });
    expect(line).toMatchObject({ level: 'info', status: 200, clientGone: 'streaming' });
    expect(line).not.toContainAnyKeys(['brokenBody', 'cause', 'reason']);
    await expectNothingInFlight(world);
  });

  it('is given up upstream when it goes on for longer than TIMEOUT_STREAM_MS', async () => {
    await using upstream = await startTrackUpstream();
    await using world = startWorld({ UPSTREAM_URL: upstream.url, TIMEOUT_STREAM_MS: '400' });
    const client = new AbortController();
    const ordered = order(world, client);
    await upstream.arrived;
    upstream.sendHead();
    upstream.send(FIRST_PIECE);
    await (await ordered).body?.getReader().read();
    const leftAt = performance.now();
    await leave(world, client);
    const dripping = setInterval(() => upstream.send('more'), 10);
    await upstream.closed;
    clearInterval(dripping);
    expect(performance.now() - leftAt).toBeGreaterThanOrEqual(400);
    expect(await world.line({ route: ROUTE })).toMatchObject({ level: 'info', clientGone: 'streaming' });
    await expectNothingInFlight(world);
  });
});

describe('a generation whose client goes away before the audio', () => {
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
    const gone = ordered.then(
      () => false,
      () => true,
    );
    await leave(world, client);
    expect(await gone).toBe(true);
    if (!hasHead) upstream.sendHead();
    upstream.send(FIRST_PIECE);
    while (!world.admission.streamedBodies.inUse) await Bun.sleep(1);
    await world.request('/api/health');
    expect(placesInUse(world)).toEqual({ streams: 1, streamedBodies: 1, tokens: 1 });

    expect(await upstream.finish()).toBe(true);
    const line = await world.line({ route: ROUTE });
    expect(line).toMatchObject({
      level: 'info',
      clientGone: 'waiting',
      bytes: 0,
      upstream: [{ call: 'music', outcome: 200 }],
    });
    expect(line).not.toContainAnyKeys(['brokenBody', 'cause', 'reason']);
    await expectNothingInFlight(world);
  });

  it('is read to its end when its session was renewed for it', async () => {
    await using world = startWorld();
    const body = releasedBody();
    const head = Promise.withResolvers<Response>();
    world.upstream
      .on('POST /v1/auth/refresh', () => Response.json({ access_token: 'a', refresh_token: 'r' }))
      .on('POST /v1/music', () => head.promise);
    const client = new AbortController();
    const left = order(world, client, REFRESH_ONLY).catch(() => {});
    await world.upstream.arrived('POST /v1/music');
    await leave(world, client);
    await left;
    body.release(FIRST_PIECE);
    head.resolve(new Response(body.stream));
    while (!world.admission.streamedBodies.inUse) await Bun.sleep(1);
    for (let served = 0; served < 3; served++) await world.request('/api/health');
    body.release('the rest');
    body.end();
    expect(await world.line({ route: ROUTE })).toMatchObject({ level: 'info', clientGone: 'waiting' });
    expect(world.upstream.last('POST /v1/music').signal.aborted).toBe(false);
    await expectNothingInFlight(world);
  });
});
