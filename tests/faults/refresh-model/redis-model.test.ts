import { expect, it } from 'bun:test';
import { RedisClient } from 'bun';
import fc from 'fast-check';
import { type Aged, get, swap } from '../../../src/gateway/refresh/redis-commands.ts';
import type { Fact } from '../../../src/gateway/refresh/store.ts';
import { REDIS_SERVER, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { RedisModel } from './redis-model.ts';

/** A record with this lifetime is gone before the next command. */
const SHORT_MS = 1;
const SHORT_PASSES_MS = 4;
/** Far enough apart that no comparison of lifetimes depends on how long the test takes. */
const LIFETIMES_MS = [20_000, 60_000, 300_000];

const fact = fc.constantFrom<(Fact | undefined)[]>(
  ...[undefined, { kind: 'leased', detail: 'a' } as const, { kind: 'leased', detail: 'b' } as const],
  ...[{ kind: 'renewed', detail: 'sealed 1 2' } as const, { kind: 'rejected', detail: '' } as const],
);
const step = fc.record({
  name: fc.constantFrom('one', 'two'),
  from: fact,
  to: fact,
  lifetimeMs: fc.constantFrom(SHORT_MS, ...Array.from({ length: 10 }, () => LIFETIMES_MS).flat()),
  isOwn: fc.boolean(),
});

describeWith([REDIS_SERVER], 'the model of Redis', () => {
  it('replies to random sequences of the scripts as a Redis server does, and keeps the same records', async () => {
    await using redis = await startRedis();
    const real = new RedisClient(redis.url);
    const model = new RedisModel(Date.now);
    const both = [{ send: async (_: string, parameters: readonly string[]) => model.eval(parameters) }, real];
    /** Ages and lifetimes are near each other, as the two are asked one after the other. */
    const expectNear = (one: number, other: number) =>
      expect(Math.abs(Math.max(0, one) - Math.max(0, other))).toBeLessThan(5000);
    const expectSame = (one: Aged | undefined, other: Aged | undefined) => {
      expect(one).toEqual(other && { ...other, ageMs: expect.any(Number) });
      expectNear(one?.ageMs ?? 0, other?.ageMs ?? 0);
    };
    let sequences = 0;
    const property = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 12 }), async (steps) => {
      const prefix = sequences++;
      for (const { name, from, to, lifetimeMs, isOwn } of steps) {
        const key = `${prefix}-${name}`;
        const swaps = both.map((each) => swap(each, key, from, to, lifetimeMs, isOwn));
        const [modelled, replied] = await Promise.all(swaps);
        if (lifetimeMs === SHORT_MS) await Bun.sleep(SHORT_PASSES_MS);
        const [kept, realKept] = await Promise.all(both.map((each) => get(each, key)));
        expect(modelled?.isWritten).toBe(replied?.isWritten);
        expectSame(modelled?.before, replied?.before);
        expectSame(kept, realKept);
        expectNear(model.remainingMs(`music-gateway:${key}`), await real.pttl(`music-gateway:${key}`));
      }
    });
    await fc.assert(property, { numRuns: 500, seed: 20_261_123 });
    real.close();
  });
});
