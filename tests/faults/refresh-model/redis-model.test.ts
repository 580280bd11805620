import { expect, it } from 'bun:test';
import { RedisClient } from 'bun';
import fc from 'fast-check';
import { type Aged, get, swap } from '../../../src/gateway/refresh/redis-commands.ts';
import type { Fact } from '../../../src/gateway/refresh/store.ts';
import { REDIS_SERVER, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { RedisModel } from './redis-model.ts';

const PREFIX = 'music-gateway:';
const leased = (detail: string): Fact => ({ kind: 'leased', detail });
const fact = fc.constantFrom(undefined, leased('a'), leased('b'), leased('with 2 spaces'));
const step = fc.record({
  name: fc.constantFrom('one', 'two'),
  from: fact,
  to: fact,
  // Far enough apart that no comparison of lifetimes depends on how long the test takes.
  lifetimeMs: fc.constantFrom(20_000, 60_000, 300_000),
  isOwn: fc.boolean(),
});

/** Ages and lifetimes are near each other, as the two are asked one after the other. */
const near = (ms: number | undefined) => Math.round(Math.max(0, ms ?? 0) / 10_000);
const withoutAge = (aged: Aged | undefined) => aged && { ...aged, ageMs: near(aged.ageMs) };

describeWith([REDIS_SERVER], 'the model of Redis', () => {
  it('replies to random sequences of the scripts as a Redis server does, and keeps the same facts', async () => {
    await using redis = await startRedis();
    const real = new RedisClient(redis.url);
    const model = new RedisModel(Date.now);
    const both = [{ send: async (_: string, parameters: readonly string[]) => model.eval(parameters) }, real];
    let sequences = 0;
    const property = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 12 }), async (steps) => {
      const prefix = sequences++;
      for (const { name, from, to, lifetimeMs, isOwn } of steps) {
        const key = `${prefix}-${name}`;
        const swaps = await Promise.all(both.map((each) => swap(each, key, from, to, lifetimeMs, isOwn)));
        const kept = await Promise.all(both.map((each) => get(each, key)));
        const lifetimes = [model.remainingMs(PREFIX + key), await real.pttl(PREFIX + key)];
        const [modelled, replied] = swaps.map((swapped, index) => ({
          isWritten: swapped?.isWritten,
          before: withoutAge(swapped?.before),
          kept: withoutAge(kept[index]),
          lasts: near(lifetimes[index]),
        }));
        expect(modelled).toEqual(replied);
      }
    });
    await fc.assert(property, { numRuns: 500, seed: 20_261_123 });
    real.close();
  });
});
