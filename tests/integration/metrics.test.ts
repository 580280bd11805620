import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { messages } from '../../src/gateway/http/messages.ts';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../support/metrics.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { REDIS_SERVER, startRedis } from '../support/redis.ts';
import { describeWith } from '../support/requirements.ts';
import { ACCESS_ONLY, SIGNED_IN, startWorld, type World } from '../support/world.ts';

const GENERATE = { model: 'm', prompt: 'p', music_length_ms: 3000 };

describe('the metrics', () => {
  let metrics: Metrics;
  let world: World;
  beforeEach(() => {
    metrics = new Metrics();
    world = startWorld({}, metrics);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const samples = () => samplesOf(metrics.registry);

  it('count requests by route, method and class of status', async () => {
    world.upstream.on('GET /v1/models', () => Response.json({}));
    await world.request('/api/music/models', { cookie: ACCESS_ONLY });
    await world.request('/api/music/models');
    await world.request('/api/upstream/v1/a', { method: 'PUT' });
    await world.request('/api/upstream/v1/b', { method: 'PUT' });
    const found = await samples();
    const of = (route: string, method: string, status: string) =>
      found.get(`requests_total{route="${route}",method="${method}",status="${status}"}`);
    expect(of('/api/music/models', 'GET', '2xx')).toBe(1);
    expect(of('/api/music/models', 'GET', '4xx')).toBe(1);
    expect(of('/api/upstream/*', 'PUT', '4xx')).toBe(2);
    expect(found.get('response_head_seconds_count{route="/api/music/models"}')).toBe(2);
    expect(found.get('errors_total{reason="notSignedIn"}')).toBe(3);
  });

  it('time each call upstream, by its outcome', async () => {
    world.upstream.on('GET /v1/models', () => new Response('', { status: 503 }));
    await world.request('/api/music/models', { cookie: ACCESS_ONLY });
    const found = await samples();
    expect(found.get('upstream_seconds_count{call="models",outcome="5xx"}')).toBe(1);
    expect(found.get('upstream_seconds_bucket{le="+Inf",call="models",outcome="5xx"}')).toBe(1);
  });

  it('count refreshes by their outcome', async () => {
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === 'Bearer new' ? Response.json({}) : new Response('', { status: 401 }),
    );
    const pair = { access_token: 'new', refresh_token: 'newer' };
    world.upstream.on('POST /v1/auth/refresh', () => Response.json(pair));
    await world.request('/api/auth/session', { cookie: SIGNED_IN });
    await world.request('/api/auth/session', { cookie: SIGNED_IN });
    const found = await samples();
    expect(found.get('refreshes_total{outcome="renewed"}')).toBe(1);
    expect(found.get('refreshes_total{outcome="replayed"}')).toBe(1);
  });

  it('count requests while they are in flight, and their bytes when they have ended', async () => {
    const answer = Promise.withResolvers<void>();
    world.upstream.on('POST /v1/music', () => answer.promise.then(() => new Response('a'.repeat(20_000))));
    const generations = [1, 2].map(() =>
      world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: GENERATE }),
    );
    await world.upstream.arrived('POST /v1/music', 2);
    expect((await samples()).get('requests_in_flight{route="/api/music/generate"}')).toBe(2);
    answer.resolve();
    for (const generation of generations) await (await generation).arrayBuffer();
    const left = async () => (await samples()).get('requests_in_flight{route="/api/music/generate"}');
    while (await left()) await Bun.sleep(5);
    expect((await samples()).get('sent_bytes_total{route="/api/music/generate"}')).toBe(40_000);
  });

  it('count clients that go away, by what they waited for', async () => {
    world.upstream.on(
      'GET /v1/endless',
      () => new Response(new ReadableStream({ start: (c) => c.enqueue(new Uint8Array(9)) })),
    );
    world.upstream.on('GET /v1/silent', () => new Promise(() => {}));
    const client = new AbortController();
    const options = { cookie: ACCESS_ONLY, signal: client.signal };
    const silent = world.request('/api/upstream/v1/silent', options);
    await world.upstream.arrived('GET /v1/silent');
    await world.request('/api/upstream/v1/endless', options);
    client.abort();
    await expect(silent).rejects.toThrow();
    await Promise.all([world.line({ clientGone: 'waiting' }), world.line({ clientGone: 'streaming' })]);
    const found = await samples();
    expect(found.get('client_aborts_total{route="/api/upstream/*",phase="waiting"}')).toBe(1);
    expect(found.get('client_aborts_total{route="/api/upstream/*",phase="streaming"}')).toBe(1);
    expect(found.get('upstream_seconds_count{call="proxy",outcome="client_gone"}')).toBe(1);
    // Nobody heard the answer to the first, so it is no failure.
    expect(found.get('requests_total{route="/api/upstream/*",method="GET",status="none"}')).toBe(1);
    expect(found.get('requests_total{route="/api/upstream/*",method="GET",status="2xx"}')).toBe(1);
    expect(found.get('requests_total{route="/api/upstream/*",method="GET",status="5xx"}')).toBeUndefined();
    expect(found.get('errors_total{reason="upstreamUnreachable"}')).toBe(0);
  });

  it('have every error from the start, so that its first occurrence is an increase', async () => {
    const found = await samples();
    for (const reason of Object.keys(messages)) expect(found.get(`errors_total{reason="${reason}"}`)).toBe(0);
  });

  it('grow by no input', async () => {
    const send = async (round: number) => {
      await world.request(`/nothing/${round}`);
      await world.request(`/api/upstream/v1/${round}?${round}`);
      await world.request('/api/music/models', { origin: `https://evil-${round}.test` });
      await world.request('/api/health', {
        headers: { 'x-request-id': `id-${round}`, 'user-agent': `${round}` },
      });
    };
    await send(0);
    const names = [...(await samples()).keys()];
    for (let round = 1; round <= 5; round++) await send(round);
    expect([...(await samples()).keys()]).toEqual(names);
  });

  it('name the version that runs', async () => {
    const { version } = await Bun.file(new URL('../../package.json', import.meta.url)).json();
    expect((await samples()).get(`info{version="${version}"}`)).toBe(1);
  });
});

describe('bodies that the upstream broke off', () => {
  it('are counted', async () => {
    const metrics = new Metrics();
    await using upstream = await startRawUpstream((socket) => {
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n${'x'.repeat(100_000)}`);
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url }, metrics);
    const broken = world.request('/api/upstream/v1/broken', { cookie: ACCESS_ONLY });
    await expect(broken.then((response) => response.arrayBuffer())).rejects.toThrow();
    await world.line({ brokenBody: true });
    const found = await samplesOf(metrics.registry);
    expect(found.get('broken_bodies_total{route="/api/upstream/*"}')).toBe(1);
  });
});

describe('the overload refusals and the cookie size refusals', () => {
  it('are errors by their reason', async () => {
    const metrics = new Metrics();
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' }, metrics);
    const leave = world.admission.streams.take();
    const big = { access_token: 'a'.repeat(5000), refresh_token: 'r' };
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', () => Response.json(big));
    const refused = await world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: GENERATE });
    expect(refused.status).toBe(503);
    await world.request('/api/auth/idp', { json: { code: 'c', code_verifier: 'v'.repeat(43) } });
    leave();
    const found = await samplesOf(metrics.registry);
    expect(found.get('errors_total{reason="overloaded"}')).toBe(1);
    expect(found.get('errors_total{reason="tokensTooLarge"}')).toBe(1);
  });
});

describeWith([REDIS_SERVER], 'the state of Redis', () => {
  it('is 1 while it answers and 0 while it does not', async () => {
    await using redis = await startRedis();
    const metrics = new Metrics();
    await using world = startWorld({ REDIS_URL: redis.url }, metrics);
    const isUp = async () => (await samplesOf(metrics.registry)).get('redis_up');
    while ((await isUp()) !== 1) await Bun.sleep(5);
    await redis.stop();
    // Before anybody has needed it.
    while ((await isUp()) !== 0) await Bun.sleep(5);
    await redis.start();
    while ((await isUp()) !== 1) await Bun.sleep(20);
    expect(world.lines).toContainEqual(expect.objectContaining({ msg: expect.stringContaining('again') }));
  });

  it('is 0 when there is none, before anybody has asked it', async () => {
    const metrics = new Metrics();
    await using world = startWorld({ REDIS_URL: 'redis://127.0.0.1:1' }, metrics);
    await world.line({ level: 'warn' });
    expect((await samplesOf(metrics.registry)).get('redis_up')).toBe(0);
  });

  it('is nothing without Redis', async () => {
    const others = new Metrics();
    await using _ = startWorld({}, others);
    expect([...(await samplesOf(others.registry)).keys()]).not.toContain('redis_up');
  });
});
