import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { STREAMED_BODY_BYTES, WAITING_CALL_BYTES } from '../../../src/gateway/settings/memory.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../../support/metrics.ts';
import { ACCESS_ONLY, startWorld, type World } from '../../support/world.ts';

const LIMITS = { MAX_IN_FLIGHT_REQUESTS: '7', MAX_IN_FLIGHT_PER_SESSION: '2', MAX_STREAMED_BODIES: '5' };
const POOLS = ['identity_provider', 'session', 'sign_out', 'read', 'public', 'stream', 'streamed_body'];

describe('the metrics of admission', () => {
  let metrics: Metrics;
  let world: World;
  beforeEach(() => {
    metrics = new Metrics();
    world = startWorld(LIMITS, metrics);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const sample = async (name: string) => (await samplesOf(metrics.registry)).get(name);
  /** The values of a metric, in the order of the pools. */
  const values = async (name: string, pools = POOLS) => {
    const found = await samplesOf(metrics.registry);
    return pools.map((pool) => found.get(`${name}{pool="${pool}"}`));
  };

  it('have each pool from the start', async () => {
    expect(await values('places_limit')).toEqual([250, 450, 50, 750, 100, 7, 5]);
    expect(await values('places_in_use')).toEqual(POOLS.map(() => 0));
    const refusing = [...POOLS, 'one_session', 'request_body'];
    expect(await values('refused_total', refusing)).toEqual(refusing.map(() => 0));
  });

  it('show the places of a pool while they are in use', async () => {
    const { identityProvider, sessions, signOuts, reads, publicDetails, streams, streamedBodies } =
      world.admission;
    const pools = [identityProvider, sessions, signOuts, reads, publicDetails, streams, streamedBodies];
    const releases = pools.flatMap((pool, index) => Array.from({ length: index + 1 }, () => pool.take()));
    expect(await values('places_in_use')).toEqual([1, 2, 3, 4, 5, 6, 7]);
    for (const release of releases) release();
    expect(await values('places_in_use')).toEqual(POOLS.map(() => 0));
  });

  it('count what is refused, by pool', async () => {
    const { streams, requestBodies } = world.admission;
    world.upstream.on('GET /v1/models', () => new Promise(() => {}));
    const client = new AbortController();
    const models = () => world.request('/api/music/models', { cookie: ACCESS_ONLY, signal: client.signal });
    const waiting = [models(), models()];
    await world.upstream.arrived('GET /v1/models', 2);
    expect((await models()).status).toBe(429);
    client.abort();
    await Promise.allSettled(waiting);
    while (streams.inUse < streams.limit) streams.take();
    const stranger = await world.request('/api/upstream/v1/music/public/abc');
    expect(stranger.status).toBe(503);
    expect(() => requestBodies.open(0).grow(requestBodies.limitBytes)).toThrow();
    // Twice: a counter must not grow by being read.
    for (const _ of [1, 2]) {
      const pools = ['read', 'stream', 'one_session', 'request_body'];
      expect(await values('refused_total', pools)).toEqual([0, 1, 1, 1]);
    }
  });

  it('sum up the memory that is promised, and name its limit', async () => {
    const { streams, streamedBodies, requestBodies, memoryLimitBytes } = world.admission;
    const promised = async () => (await sample('memory_promised_bytes')) ?? 0;
    const before = await promised();
    expect(before).toBeGreaterThan(0);
    const leave = streams.take();
    const end = streamedBodies.take();
    const body = requestBodies.open(0);
    const added = WAITING_CALL_BYTES + STREAMED_BODY_BYTES + body.bytes;
    expect((await promised()) - before).toBeCloseTo(added);
    leave();
    end();
    body.release();
    expect(await promised()).toBe(before);
    expect(await sample('memory_limit_bytes')).toBe(memoryLimitBytes);
  });
});
