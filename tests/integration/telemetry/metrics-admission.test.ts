import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { fill } from '../../support/long-calls.ts';
import { samplesOf } from '../../support/metrics.ts';
import { ACCESS_ONLY, startWorld, type World } from '../../support/world.ts';

const LIMITS = { MAX_IN_FLIGHT_REQUESTS: '7', MAX_IN_FLIGHT_PER_SESSION: '2' };
const POOLS = ['identity_provider', 'session', 'sign_out', 'read', 'stream', 'memory'];

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
    expect(await values('places_limit')).toEqual([250, 450, 200, 750, 7, world.admission.ledger.limit]);
    expect(await values('places_in_use')).toEqual(POOLS.map(() => 0));
    const refusing = [...POOLS, 'one_session', 'request_body'];
    expect(await values('refused_total', refusing)).toEqual(refusing.map(() => 0));
  });

  it('show the places of a pool while they are in use', async () => {
    const { identityProvider, sessions, signOuts, reads, streams, ledger } = world.admission;
    const pools = [identityProvider, sessions, signOuts, reads, streams, ledger];
    for (const [index, pool] of pools.entries()) pool.take(index + 1);
    expect(await values('places_in_use')).toEqual([1, 2, 3, 4, 5, 6]);
    for (const [index, pool] of pools.entries()) pool.release(index + 1);
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
    fill(streams);
    const stranger = await world.request('/api/upstream/v1/music/public/abc');
    expect(stranger.status).toBe(503);
    expect(() => requestBodies.grow(requestBodies.open(0), world.admission.ledger.limit)).toThrow();
    // Twice: a counter must not grow by being read.
    for (const _ of [1, 2]) {
      const pools = ['read', 'stream', 'one_session', 'request_body'];
      expect(await values('refused_total', pools)).toEqual([0, 1, 1, 1]);
    }
  });

  it('sum up the memory that is promised, and name its limit', async () => {
    const { ledger, memoryLimitBytes } = world.admission;
    const promised = async () => (await sample('memory_promised_bytes')) ?? 0;
    const before = await promised();
    expect(before).toBeGreaterThan(0);
    ledger.take(1000);
    expect((await promised()) - before).toBe(1000);
    ledger.release(1000);
    expect(await promised()).toBe(before);
    expect(await sample('memory_limit_bytes')).toBe(memoryLimitBytes);
  });
});
