import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { version } from '../../../package.json';
import { messages } from '../../../src/gateway/http/messages.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { eventually } from '../../support/eventually.ts';
import { fill } from '../../support/long-calls.ts';
import { parseSamples, samplesOf } from '../../support/metrics.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { REDIS_SERVER, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { GENERATE } from '../../support/routes.ts';
import { ACCESS_ONLY, SIGNED_IN, startWorld, type World } from '../../support/world.ts';

const MODELS = '/api/music/models';
const LIMITS = { MAX_IN_FLIGHT_REQUESTS: '7', MAX_IN_FLIGHT_PER_SESSION: '2' };
const POOLS = ['identity_provider', 'session', 'sign_out', 'read', 'stream', 'memory'];

let metrics: Metrics;
let world: World;
beforeEach(() => {
  metrics = new Metrics();
});

const samples = () => samplesOf(metrics.registry);
const sample = async (name: string) => (await samples()).get(name);
/** The values of these samples, undefined for those that do not exist. */
async function valuesOf(...names: string[]) {
  const found = await samples();
  return Object.fromEntries(names.map((name) => [name, found.get(name)]));
}
const expectSamples = async (expected: Record<string, number | undefined>) =>
  expect(await valuesOf(...Object.keys(expected))).toEqual(expected);

describe('the metrics', () => {
  beforeEach(() => {
    world = startWorld(LIMITS, metrics);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  it('count requests by route, method and class of status, and calls by their outcome', async () => {
    world.upstream.on('GET /v1/models', () => new Response('', { status: 599 }));
    await world.request(MODELS, { cookie: ACCESS_ONLY });
    await world.request(MODELS);
    for (const path of ['a', 'b']) await world.request(`/api/upstream/v1/${path}`, { method: 'PUT' });
    await expectSamples({
      [`requests_total{route="${MODELS}",method="GET",status="5xx"}`]: 1,
      [`requests_total{route="${MODELS}",method="GET",status="4xx"}`]: 1,
      'requests_total{route="/api/upstream/*",method="PUT",status="4xx"}': 2,
      [`response_head_seconds_count{route="${MODELS}"}`]: 2,
      'errors_total{reason="notSignedIn"}': 3,
      'upstream_seconds_count{call="models",outcome="5xx"}': 1,
      'upstream_seconds_bucket{le="+Inf",call="models",outcome="5xx"}': 1,
    });
  });

  it('count refreshes by their outcome', async () => {
    const pair = { access_token: 'new', refresh_token: 'newer' };
    world.upstream
      .on('GET /v1/me', ({ headers }) =>
        headers.get('authorization') === 'Bearer new' ? Response.json({}) : new Response('', { status: 401 }),
      )
      .on('POST /v1/auth/refresh', () => Response.json(pair));
    for (const _ of [1, 2]) await world.request('/api/auth/session', { cookie: SIGNED_IN });
    await expectSamples({
      'refreshes_total{outcome="renewed"}': 1,
      'refreshes_total{outcome="replayed"}': 1,
    });
  });

  it('count requests while they are in flight, and their bytes when they have ended', async () => {
    const released = Promise.withResolvers<void>();
    world.upstream.on('POST /v1/music', () => released.promise.then(() => new Response('a'.repeat(20_000))));
    const generations = [1, 2].map(() => world.request(GENERATE.path, GENERATE.options));
    await world.upstream.arrived('POST /v1/music', 2);
    const inFlight = () => sample(`requests_in_flight{route="${GENERATE.path}"}`);
    expect(await inFlight()).toBe(2);
    released.resolve();
    for (const generation of generations) await (await generation).arrayBuffer();
    await eventually(async () => (await inFlight()) === 0, 'the end of both generations');
    await expectSamples({ [`sent_bytes_total{route="${GENERATE.path}"}`]: 40_000 });
  });

  it('count clients that disconnect, by what they were waiting for', async () => {
    const endless = () => new ReadableStream({ start: (body) => body.enqueue(new Uint8Array(9)) });
    world.upstream.on('GET /v1/endless', () => new Response(endless()));
    world.upstream.on('GET /v1/silent', () => new Promise(() => {}));
    const client = new AbortController();
    const options = { cookie: ACCESS_ONLY, signal: client.signal };
    const silent = world.request('/api/upstream/v1/silent', options);
    await world.upstream.arrived('GET /v1/silent');
    await world.request('/api/upstream/v1/endless', options);
    client.abort();
    await expect(silent).rejects.toThrow();
    await Promise.all([world.line({ clientGone: 'waiting' }), world.line({ clientGone: 'streaming' })]);
    await expectSamples({
      'client_aborts_total{route="/api/upstream/*",phase="waiting"}': 1,
      'client_aborts_total{route="/api/upstream/*",phase="streaming"}': 1,
      'upstream_seconds_count{call="proxy",outcome="client_gone"}': 1,
      // No client received the first response, so it is no failure.
      'requests_total{route="/api/upstream/*",method="GET",status="none"}': 1,
      'requests_total{route="/api/upstream/*",method="GET",status="2xx"}': 1,
      'requests_total{route="/api/upstream/*",method="GET",status="5xx"}': undefined,
      'errors_total{reason="upstreamUnreachable"}': 0,
      'sent_bytes_total{route="/api/upstream/*"}': 9,
    });
  });

  it('count a body that the upstream broke off, of which the log warns', async () => {
    let breakOff = () => {};
    await using upstream = await startRawUpstream((socket) => {
      breakOff = () => void socket.end();
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n${'x'.repeat(300_000)}`);
    });
    const measured = new Metrics();
    await using broken = startWorld({ UPSTREAM_URL: upstream.url }, measured);
    const response = await broken.request('/api/upstream/v1/track', { cookie: ACCESS_ONLY });
    const reading = async () => {
      let bytes = 0;
      for await (const piece of response.body ?? []) {
        bytes += piece.byteLength;
        if (bytes === 300_000) breakOff();
      }
    };
    await expect(reading()).rejects.toThrow();
    const line = await broken.line({ brokenBody: true });
    expect(line).toMatchObject({ level: 'warn', status: 200, bytes: 300_000 });
    expect(line).not.toContainKey('clientGone');
    const found = await samplesOf(measured.registry);
    expect(found.get('broken_bodies_total{route="/api/upstream/*"}')).toBe(1);
  });

  it('have every error from the start, so that its first occurrence is an increase', async () => {
    const names = Object.keys(messages.en).map((reason) => `errors_total{reason="${reason}"}`);
    const reuses = ['presented', 'late'].map((why) => `refresh_token_reuses_total{why="${why}"}`);
    await expectSamples(Object.fromEntries([...names, ...reuses].map((name) => [name, 0])));
  });

  it('get no further series from any input', async () => {
    const send = async (round: number) => {
      await world.request(`/nothing/${round}`);
      await world.request(`/api/upstream/v1/${round}?${round}`);
      await world.request(MODELS, { origin: `https://evil-${round}.test` });
      const headers = { 'x-request-id': `id-${round}`, 'user-agent': `${round}` };
      await world.request('/api/health', { headers, method: `METHOD${round}` });
    };
    await send(0);
    const names = [...(await samples()).keys()];
    await send(1);
    expect([...(await samples()).keys()]).toEqual(names);
  });

  it('are served at /metrics on a port of their own, and at no other path or method', async () => {
    await using server = metrics.serve({ port: 0, hostname: '127.0.0.1' });
    const response = await fetch(`${server.url}metrics`);
    expect(response.headers.get('content-type')).toStartWith('text/plain; version=0.0.4');
    const text = await response.text();
    const found = parseSamples(text);
    expect([found.get(`info{version="${version}"}`), found.get('redis_up')]).toEqual([1, undefined]);
    expect(text).toContain('\nprocess_resident_memory_bytes ');
    for (const path of ['', 'api/health', 'metrics/', 'metrics/x']) {
      expect((await fetch(server.url + path)).status).toBe(404);
    }
    expect((await fetch(`${server.url}metrics`, { method: 'POST' })).status).toBe(404);
  });
});

describe('the metrics of admission', () => {
  beforeEach(() => {
    world = startWorld(LIMITS, metrics);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const expectPools = async (name: string, expected: readonly number[], pools = POOLS) =>
    expectSamples(
      Object.fromEntries(pools.map((pool, index) => [`${name}{pool="${pool}"}`, expected[index]])),
    );

  it('show the limit of each pool, and its places while they are in use', async () => {
    const { identityProvider, sessions, signOuts, reads, streams, ledger } = world.admission;
    await expectPools('places_limit', [250, 450, 200, 750, 7, ledger.limit]);
    const pools = [identityProvider, sessions, signOuts, reads, streams, ledger];
    for (const [index, pool] of pools.entries()) pool.take(index + 1);
    await expectPools('places_in_use', [1, 2, 3, 4, 5, 6]);
    for (const [index, pool] of pools.entries()) pool.release(index + 1);
    await expectPools('places_in_use', [0, 0, 0, 0, 0, 0]);
  });

  it('count what is refused, by pool, from the start', async () => {
    const { streams, requestBodies, ledger, perSession } = world.admission;
    const pools = [...POOLS, 'one_session', 'request_body'];
    await expectPools('refused_total', [0, 0, 0, 0, 0, 0, 0, 0], pools);
    for (const _ of [1, 2]) perSession.join('access-1', { isGeneration: false, bodyBytes: 0 });
    expect((await world.request(MODELS, { cookie: ACCESS_ONLY })).status).toBe(429);
    fill(streams);
    expect((await world.request('/api/upstream/v1/music/public/abc')).status).toBe(503);
    expect(() => requestBodies.grow(requestBodies.open(0), ledger.limit)).toThrow();
    // Twice: a counter must not grow by being read.
    for (const _ of [1, 2]) await expectPools('refused_total', [0, 0, 0, 0, 1, 0, 1, 1], pools);
  });

  it('sum up the memory that is promised, and name its limit', async () => {
    const { ledger, memoryLimitBytes } = world.admission;
    const promised = async () => (await sample('memory_promised_bytes')) ?? 0;
    const before = await promised();
    expect(before).toBe(memoryLimitBytes - ledger.limit);
    ledger.take(1000);
    expect(await promised()).toBe(before + 1000);
    ledger.release(1000);
    expect(await sample('memory_limit_bytes')).toBe(memoryLimitBytes);
  });
});

it('redis_up is 0 when Redis is away, before any request has needed it', async () => {
  await using without = startWorld({ REDIS_URL: 'redis://127.0.0.1:1' }, metrics);
  await without.line({ level: 'warn' });
  expect(await sample('redis_up')).toBe(0);
});

describeWith([REDIS_SERVER], 'the metric redis_up', () => {
  it('is 1 while Redis responds and 0 while it does not', async () => {
    await using redis = await startRedis();
    await using shared = startWorld({ REDIS_URL: redis.url }, metrics);
    const becomes = (value: number) =>
      eventually(async () => (await sample('redis_up')) === value, `redis_up to be ${value}`);
    await becomes(1);
    await redis.stop();
    await becomes(0);
    await redis.start();
    await becomes(1);
    expect(await shared.line({ level: 'info' })).toMatchObject({ msg: expect.stringContaining('again') });
  });
});
