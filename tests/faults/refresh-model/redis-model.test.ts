import { expect, it } from 'bun:test';
import { RedisClient } from 'bun';
import fc from 'fast-check';
import { CLAIMED, ENDED, RENEWED, run, type Script } from '../../../src/gateway/refresh/redis-commands.ts';
import type { RedisLink } from '../../../src/gateway/refresh/redis-connection.ts';
import { REDIS_SERVER, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { RedisModel } from './redis-model.ts';

const RUNS = 3000;
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

/** Redis and the model word their errors differently. */
function outcomeOf(command: Promise<unknown>): Promise<unknown> {
  return command.catch(() => 'an error');
}

describeWith([REDIS_SERVER], 'the model of Redis', () => {
  it('replies to random sequences of the scripts as a Redis server does, and keeps the same records', async () => {
    await using redis = await startRedis();
    const real = new RedisClient(redis.url);
    const model = new RedisModel(Date.now);
    const inModel: RedisLink = {
      connect: async () => {},
      send: async (command, parameters) => model.command(command, parameters),
      close: () => {},
      onclose: null,
    };
    let sequences = 0;
    const expectSame = async (name: string) => {
      const [value, remaining] = await Promise.all([real.send('GET', [name]), real.send('PTTL', [name])]);
      expect(model.command('GET', [name])).toBe(value);
      expect(Math.abs(Number(model.command('PTTL', [name])) - remaining)).toBeLessThan(5000);
    };
    const checkSequence = async (steps: readonly Step[]) => {
      const prefix = `${sequences++}-`;
      for (const { script, key, values } of steps) {
        const reply = (server: RedisLink) => outcomeOf(run(server, script, prefix + key, [...values]));
        expect(await reply(inModel)).toEqual(await reply(real));
        if (values.includes(SHORT)) await Bun.sleep(SHORT_PASSES_MS);
        const kept = ['refresh', 'issued'].map((each) => `music-gateway:${each}:${prefix}${key}`);
        await Promise.all(kept.map(expectSame));
      }
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 12 }), checkSequence), {
      numRuns: RUNS,
    });
    real.close();
  }, 120_000);
});
