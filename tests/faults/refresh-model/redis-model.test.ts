import { expect, it } from 'bun:test';
import { RedisClient } from 'bun';
import fc from 'fast-check';
import { CLAIMED, ENDED, RENEWED, run, type Script } from '../../../src/gateway/refresh/redis-commands.ts';
import { REDIS_SERVER, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { RedisModel } from './redis-model.ts';

const RUNS = 500;
/** Far enough apart that no comparison of lifetimes depends on how long the test takes. */
const LIFETIMES = ['20000', '60000', '300000'];
/** A record with this lifetime is gone before the next command. */
const SHORT = '1';
const SHORT_PASSES_MS = 4;

const ENDED_1 = `${ENDED}1`;
const ENDED_2 = `${ENDED}2`;
const record = fc.constantFrom(
  `${CLAIMED}a`,
  `${CLAIMED}b`,
  `${RENEWED}1`,
  'rejected',
  'unreachable',
  ENDED_1,
  ENDED_2,
);
const lifetime = fc.oneof(
  { arbitrary: fc.constantFrom(...LIFETIMES), weight: 30 },
  { arbitrary: fc.constant(SHORT), weight: 1 },
);
const key = fc.constantFrom('one', 'two');

interface Step {
  readonly script: Script;
  readonly key: string;
  readonly values: readonly string[];
}

const stepOf = (script: Script, ...values: fc.Arbitrary<string>[]): fc.Arbitrary<Step> =>
  fc.record({ script: fc.constant(script), key, values: fc.tuple(...values) });

const step = fc.oneof(
  stepOf('add', record, lifetime),
  stepOf('replace', record, lifetime, record),
  stepOf('get', fc.constant(''), fc.constant('0')),
  stepOf('markIssued', fc.constantFrom('', '1'), lifetime),
  stepOf('markPresented', fc.constantFrom('2', '3')),
  stepOf('presentedAt'),
  stepOf(
    'end',
    fc.constantFrom(ENDED_1, ENDED_2),
    lifetime,
    fc.constantFrom('0', ...LIFETIMES),
    fc.constantFrom('0', ...LIFETIMES),
    fc.constantFrom('', '1'),
  ),
  stepOf('restore', record, lifetime),
);

describeWith([REDIS_SERVER], 'the model of Redis', () => {
  it('replies to random sequences of the scripts as a Redis server does, and keeps the same records', async () => {
    await using redis = await startRedis();
    const real = new RedisClient(redis.url);
    const model = new RedisModel(Date.now);
    const inModel = { send: async (_: string, parameters: readonly string[]) => model.eval(parameters) };
    let sequences = 0;
    const expectSame = async ({ script, key, values }: Step) => {
      const keys = ['refresh', 'issued'].map((each) => `music-gateway:${each}:${key}`);
      const reply = run(inModel, script, key, [...values]);
      const realReply = run(real, script, key, [...values]);
      if (values.includes(SHORT)) {
        await realReply;
        await Bun.sleep(SHORT_PASSES_MS);
      }
      const kept = keys.map((name) => ({ value: model.get(name), ms: model.remainingMs(name) }));
      const realKept = keys.map((name) => Promise.all([real.get(name), real.pttl(name)]));
      expect(await reply).toEqual(await realReply);
      for (const [index, { value, ms }] of kept.entries()) {
        const [realValue, realMs = Number.NaN] = (await realKept[index]) ?? [];
        expect(value).toBe(realValue ?? null);
        expect(Math.abs(ms - realMs)).toBeLessThan(5000);
      }
    };
    const checkSequence = async (steps: readonly Step[]) => {
      const prefix = `${sequences++}-`;
      const checks: Promise<void>[] = [];
      for (const step of steps) {
        checks.push(expectSame({ ...step, key: prefix + step.key }));
        if (step.values.includes(SHORT)) await Promise.all(checks);
      }
      await Promise.all(checks);
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 12 }), checkSequence), {
      numRuns: RUNS,
    });
    real.close();
  }, 60_000);
});
