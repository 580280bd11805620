import { expect, it } from 'bun:test';
import { RedisClient } from 'bun';
import fc from 'fast-check';
import { get, swap } from '../../../src/gateway/refresh/redis-commands.ts';
import type { Fact } from '../../../src/gateway/refresh/store.ts';
import { REDIS_SERVER, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { RedisModel } from './redis-model.ts';

const RUNS = { numRuns: 500, seed: 20_261_123 };
/** Far enough apart that no comparison of lifetimes depends on how long the test takes. */
const LIFETIMES = [20_000, 60_000, 300_000];
/** A record with this lifetime is gone before the next command. */
const SHORT = 1;
const SHORT_PASSES_MS = 4;

const FACTS: readonly Fact[] = [
  { kind: 'leased', detail: 'a' },
  { kind: 'leased', detail: 'b' },
  { kind: 'renewed', detail: 'sealed 1 2' },
  { kind: 'rejected', detail: '' },
  { kind: 'ended', detail: '10000' },
];
const fact = fc.constantFrom(undefined, ...FACTS);
const step = fc.record({
  key: fc.constantFrom<string[]>('one', 'two'),
  from: fact,
  to: fact,
  lifetimeMs: fc.oneof(
    { arbitrary: fc.constantFrom(...LIFETIMES), weight: 30 },
    { arbitrary: fc.constant(SHORT), weight: 1 },
  ),
  isOwn: fc.boolean(),
});

describeWith([REDIS_SERVER], 'the model of Redis', () => {
  it('replies to random sequences of the scripts as a Redis server does, and keeps the same records', async () => {
    await using redis = await startRedis();
    const real = new RedisClient(redis.url);
    const model = new RedisModel(Date.now);
    const inModel = { send: async (_: string, parameters: readonly string[]) => model.eval(parameters) };
    /** Ages are near each other, as the two are asked one after the other. */
    const expectSame = (modelled: number | undefined, replied: number | undefined) =>
      expect(Math.abs(Math.max(0, modelled ?? 0) - Math.max(0, replied ?? 0))).toBeLessThan(5000);
    let sequences = 0;
    const property = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 12 }), async (steps) => {
      const prefix = `${sequences++}-`;
      for (const { from, to, lifetimeMs, isOwn, ...rest } of steps) {
        const key = prefix + rest.key;
        const [modelled, replied] = await Promise.all(
          [inModel, real].map((each) => swap(each, key, from, to, lifetimeMs, isOwn)),
        );
        if (lifetimeMs === SHORT) await Bun.sleep(SHORT_PASSES_MS);
        const [kept, realKept] = await Promise.all([inModel, real].map((each) => get(each, key)));
        expect(modelled?.isWritten).toBe(replied?.isWritten);
        for (const [one, other] of [
          [modelled?.before, replied?.before],
          [kept, realKept],
        ]) {
          expect(one).toEqual(other && { ...other, ageMs: expect.any(Number) });
          expectSame(one?.ageMs, other?.ageMs);
        }
        expectSame(model.remainingMs(`music-gateway:${key}`), await real.pttl(`music-gateway:${key}`));
      }
    });
    await fc.assert(property, RUNS);
    real.close();
  });
});
