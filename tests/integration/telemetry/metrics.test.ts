import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { eventually } from '../../support/eventually.ts';
import { parseSamples, samplesOf } from '../../support/metrics.ts';
import { REDIS_SERVER, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { GENERATE } from '../../support/routes.ts';
import { ACCESS_ONLY, SIGNED_IN, startWorld, type World } from '../../support/world.ts';

let metrics: Metrics;
beforeEach(() => {
  metrics = new Metrics();
});

const sample = async (name: string) => (await samplesOf(metrics.registry)).get(name);

describe('the metrics', () => {
  let world: World;
  beforeEach(() => {
    world = startWorld({}, metrics);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  it('count requests by route, method and class of status', async () => {
    world.upstream.on('GET /v1/models', () => Response.json({}));
    await world.request('/api/music/models', { cookie: ACCESS_ONLY });
    await world.request('/api/music/models');
    await world.request('/api/upstream/v1/a', { method: 'PUT' });
    await world.request('/api/upstream/v1/b', { method: 'PUT' });
    const found = await samplesOf(metrics.registry);
    expect(found.get('requests_total{route="/api/music/models",method="GET",status="2xx"}')).toBe(1);
    expect(found.get('requests_total{route="/api/music/models",method="GET",status="4xx"}')).toBe(1);
    expect(found.get('requests_total{route="/api/upstream/*",method="PUT",status="4xx"}')).toBe(2);
    expect(found.get('response_head_seconds_count{route="/api/music/models"}')).toBe(2);
    expect(found.get('errors_total{reason="notSignedIn"}')).toBe(3);
  });

  it('time each call upstream, by its outcome', async () => {
    world.upstream.on('GET /v1/models', () => new Response('', { status: 599 }));
    await world.request('/api/music/models', { cookie: ACCESS_ONLY });
    expect(await sample('upstream_seconds_count{call="models",outcome="5xx"}')).toBe(1);
    expect(await sample('upstream_seconds_bucket{le="+Inf",call="models",outcome="5xx"}')).toBe(1);
  });

  it('count refreshes by their outcome', async () => {
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === 'Bearer new' ? Response.json({}) : new Response('', { status: 401 }),
    );
    const pair = { access_token: 'new', refresh_token: 'newer' };
    world.upstream.on('POST /v1/auth/refresh', () => Response.json(pair));
    await world.request('/api/auth/session', { cookie: SIGNED_IN });
    await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(await sample('refreshes_total{outcome="renewed"}')).toBe(1);
    expect(await sample('refreshes_total{outcome="replayed"}')).toBe(1);
  });

  it('count requests while they are in flight, and their bytes when they have ended', async () => {
    const released = Promise.withResolvers<void>();
    world.upstream.on('POST /v1/music', () => released.promise.then(() => new Response('a'.repeat(20_000))));
    const generations = [1, 2].map(() => world.request(GENERATE.path, GENERATE.options));
    await world.upstream.arrived('POST /v1/music', 2);
    const inFlight = () => sample('requests_in_flight{route="/api/music/generate"}');
    expect(await inFlight()).toBe(2);
    released.resolve();
    for (const generation of generations) await (await generation).arrayBuffer();
    await eventually(async () => (await inFlight()) === 0, 'the end of both generations');
    expect(await sample('sent_bytes_total{route="/api/music/generate"}')).toBe(40_000);
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
    const found = await samplesOf(metrics.registry);
    const requests = (status: string) =>
      found.get(`requests_total{route="/api/upstream/*",method="GET",status="${status}"}`);
    expect(found.get('client_aborts_total{route="/api/upstream/*",phase="waiting"}')).toBe(1);
    expect(found.get('client_aborts_total{route="/api/upstream/*",phase="streaming"}')).toBe(1);
    expect(found.get('upstream_seconds_count{call="proxy",outcome="client_gone"}')).toBe(1);
    // No client received the first response, so it is no failure.
    expect([requests('none'), requests('2xx'), requests('5xx')]).toEqual([1, 1, undefined]);
    expect(found.get('errors_total{reason="upstreamUnreachable"}')).toBe(0);
    expect([...found.keys()].filter((name) => name.startsWith('sent_bytes'))).toHaveLength(1);
    expect(found.get('sent_bytes_total{route="/api/upstream/*"}')).toBe(9);
  });

  it('have every error from the start, so that its first occurrence is an increase', async () => {
    const found = await samplesOf(metrics.registry);
    for (const reason of Object.keys(messages.en))
      expect(found.get(`errors_total{reason="${reason}"}`)).toBe(0);
  });

  it('get no further series from any input', async () => {
    const send = async (round: number) => {
      await world.request(`/nothing/${round}`);
      await world.request(`/api/upstream/v1/${round}?${round}`);
      await world.request('/api/music/models', { origin: `https://evil-${round}.test` });
      const headers = { 'x-request-id': `id-${round}`, 'user-agent': `${round}` };
      await world.request('/api/health', { headers });
    };
    await send(0);
    const names = [...(await samplesOf(metrics.registry)).keys()];
    for (let round = 1; round <= 5; round++) await send(round);
    expect([...(await samplesOf(metrics.registry)).keys()]).toEqual(names);
  });

  it('name the version that runs, and say nothing of Redis without Redis', async () => {
    const { version } = await Bun.file(new URL('../../../package.json', import.meta.url)).json();
    expect(await sample(`info{version="${version}"}`)).toBe(1);
    expect(await sample('redis_up')).toBeUndefined();
  });

  it('are served at /metrics on a port of their own, and at no other path or method', async () => {
    await using server = metrics.serve({ port: 0, hostname: '127.0.0.1' });
    const response = await fetch(`${server.url}metrics`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('text/plain; version=0.0.4');
    const text = await response.text();
    expect(parseSamples(text).get('places_limit{pool="stream"}')).toBe(4000);
    const process = ['process_cpu_seconds_total', 'process_resident_memory_bytes'];
    for (const name of [...process, 'nodejs_eventloop_lag_p99_seconds']) {
      expect(text).toMatch(new RegExp(`^${name} [0-9.e-]+$`, 'm'));
    }
    for (const path of ['', 'api/health', 'metrics/', 'metrics/x']) {
      expect((await fetch(server.url + path)).status).toBe(404);
    }
    expect((await fetch(`${server.url}metrics`, { method: 'POST' })).status).toBe(404);
  });
});

describe('the metrics of an outage', () => {
  it('say that Redis is down before any request has needed it', async () => {
    await using world = startWorld({ REDIS_URL: 'redis://127.0.0.1:1' }, metrics);
    await world.line({ level: 'warn' });
    expect(await sample('redis_up')).toBe(0);
  });
});

describeWith([REDIS_SERVER], 'the metric redis_up', () => {
  it('is 1 while Redis responds and 0 while it does not', async () => {
    await using redis = await startRedis();
    await using world = startWorld({ REDIS_URL: redis.url }, metrics);
    const becomes = (value: number) =>
      eventually(async () => (await sample('redis_up')) === value, `redis_up to be ${value}`);
    await becomes(1);
    await redis.stop();
    await becomes(0);
    await redis.start();
    await becomes(1);
    const msg = expect.stringContaining('again');
    expect(world.lines).toContainEqual(expect.objectContaining({ level: 'info', msg }));
  });
});
