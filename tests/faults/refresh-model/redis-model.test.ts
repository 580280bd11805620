import { expect, it } from 'bun:test';
import { RedisClient } from 'bun';
import fc from 'fast-check';
import { get, swap } from '../../../src/gateway/refresh/redis-commands.ts';
import type { Fact } from '../../../src/gateway/refresh/store.ts';
import { REDIS_SERVER, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { RedisModel } from './redis-model.ts';

const RUNS = 500;
/** Far enough apart that no comparison of lifetimes depends on how long the test takes. */
const LIFETIMES = [20_000, 60_000, 300_000];
/** A record with this lifetime is gone before the next command. */
const SHORT = 1;
const SHORT_PASSES_MS = 4;

const facts: Fact[] = [
  { kind: 'leased', detail: 'a' },
  { kind: 'leased', detail: 'b' },
  { kind: 'renewed', detail: 'sealed 1 2' },
  { kind: 'rejected', detail: '' },
  { kind: 'ended', detail: '10000' },
];
const fact = fc.constantFrom(undefined, ...facts);
const lifetimeMs = fc.oneof(
  { arbitrary: fc.constantFrom(...LIFETIMES), weight: 30 },
  { arbitrary: fc.constant(SHORT), weight: 1 },
);
const step = fc.record({
  key: fc.constantFrom<string[]>('one', 'two'),
  from: fact,
  to: fact,
  lifetimeMs,
  isOwn: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

const withoutAge = (swapped: Awaited<ReturnType<typeof swap>> | undefined) => ({
  isWritten: swapped?.isWritten,
  before: { ...swapped?.before, ageMs: undefined },
});

describeWith([REDIS_SERVER], 'the model of Redis', () => {
  it('replies to random sequences of the scripts as a Redis server does, and keeps the same records', async () => {
    await using redis = await startRedis();
    const real = new RedisClient(redis.url);
    const model = new RedisModel(Date.now);
    const inModel = { send: async (_: string, parameters: readonly string[]) => model.eval(parameters) };
    let sequences = 0;
    const expectSame = async ({ key, from, to, lifetimeMs, isOwn }: Step) => {
      const [modelled, replied] = [inModel, real].map((redis) =>
        swap(redis, key, from, to, lifetimeMs, isOwn),
      );
      if (lifetimeMs === SHORT) {
        await replied;
        await Bun.sleep(SHORT_PASSES_MS);
      }
      const [kept, realKept] = [get(inModel, key), get(real, key)];
      const [ms, realMs] = [model.remainingMs(`music-gateway:${key}`), real.pttl(`music-gateway:${key}`)];
      expect(withoutAge(await modelled)).toEqual(withoutAge(await replied));
      const [before, realBefore] = [await kept, await realKept];
      expect(before).toEqual(realBefore && { ...realBefore, ageMs: expect.any(Number) });
      expect(Math.abs((before?.ageMs ?? 0) - (realBefore?.ageMs ?? 0))).toBeLessThan(5000);
      expect(Math.abs(Math.max(0, ms) - Math.max(0, await realMs))).toBeLessThan(5000);
    };
    const checkSequence = async (steps: readonly Step[]) => {
      const prefix = `${sequences++}-`;
      const checks: Promise<void>[] = [];
      for (const step of steps) {
        checks.push(expectSame({ ...step, key: prefix + step.key }));
        if (step.lifetimeMs === SHORT) await Promise.all(checks);
      }
      await Promise.all(checks);
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 12 }), checkSequence), {
      numRuns: RUNS,
    });
    real.close();
  }, 60_000);
});
