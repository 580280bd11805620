import { expect, it } from 'bun:test';
import { systemClock } from '../../../src/gateway/refresh/clock.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import { readDocument } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import { LEASE, newLedger, RENEWAL } from '../../support/refresh-coordinator.ts';
import { describeWith } from '../../support/requirements.ts';

const PAGE = await readDocument('deploy/redis/README.md');
/** The user that the page tells operators to make; the last rule is a password. */
const [, USER = '', RULES = ''] = /^user (\S+) (.+) >\S+$/m.exec(PAGE.text) ?? [];
const PASSWORD = 'pass:w@rd/1';
const SET_USER = `ACL SETUSER ${USER}`;
const END_CONNECTIONS = 'CLIENT KILL TYPE normal SKIPME yes';

/** One Redis with that user, instances that use it, and a look into it. All of them end with the test. */
async function start() {
  const redis = await startRedis('--user', USER, ...RULES.split(' '), `>${PASSWORD}`);
  const url = `redis://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${redis.port}`;
  let hasEnded = false;
  const clock = {
    ...systemClock,
    // Without a time limit, a busy machine is not taken for a Redis that is down.
    every: () => () => {},
    // Once the test has ended, no instance connects again.
    sleep: (ms: number) => (hasEnded ? new Promise<never>(() => {}) : systemClock.sleep(ms)),
  };
  return {
    instance() {
      const heard: string[] = [];
      const observer = { onDown: (cause: string) => heard.push(cause), onUp: () => heard.push('up') };
      const store = new RedisReplayStore(new RedisConnection(url, observer, clock), newLedger());
      const add = (to: typeof RENEWAL) => store.swap('k', undefined, to, 60_000);
      const hears = (last: string) => eventually(() => heard.at(-1) === last, `to hear ${last}`);
      return { add, heard, hears };
    },
    /** By a connection that no trouble breaks. */
    async ask(command: string) {
      const [name = '', ...values] = command.split(' ');
      using client = new RedisAdmin(redis.url);
      return String(await client.send(name, values));
    },
    async [Symbol.asyncDispose]() {
      hasEnded = true;
      await redis[Symbol.asyncDispose]();
    },
  };
}

// That every command of the scripts is tried out: process/check-config.test.ts.
describeWith([REDIS_SERVER], 'an instance whose Redis', () => {
  it.each<[name: string, begin: string[], end: string, cause: string]>([
    ['is full', ['CONFIG SET maxmemory 1'], 'CONFIG SET maxmemory 0', 'RedisError OOM'],
    ['has become a replica', ['REPLICAOF 127.0.0.1 1'], 'REPLICAOF NO ONE', 'RedisError READONLY'],
    [
      'has another password',
      [`${SET_USER} resetpass >other`, END_CONNECTIONS],
      `${SET_USER} >${PASSWORD}`,
      'RedisError ERR_REDIS_CONNECTION_CLOSED',
    ],
    ['allows the user no scripts', [`${SET_USER} -eval`], `${SET_USER} +eval`, 'RedisError NOPERM'],
  ])('%s goes on alone, says why, and is back', async (_, begin, end, cause) => {
    await using world = await start();
    const running = world.instance();
    await running.hears('up');
    for (const command of begin) await world.ask(command);
    expect(await running.add(RENEWAL)).toEqual({ isWritten: true });
    expect(await running.add(LEASE)).toMatchObject({ before: RENEWAL });
    await running.hears(cause);
    // One that starts now finds out at once, and not with its first refresh.
    const starting = world.instance();
    await starting.hears(cause);
    await world.ask(end);
    for (const each of [running, starting]) {
      await each.hears('up');
      expect(each.heard.filter((heard) => heard !== 'up')).toEqual([cause]);
    }
    await starting.add(LEASE);
    expect(await world.ask('GET music-gateway:k')).toEndWith(' leased:forged');
    // Every connection that was given up is closed.
    const connections = async () => (await world.ask('CLIENT LIST')).split(` user=${USER} `).length - 1;
    await eventually(async () => (await connections()) === 2, 'one connection of each instance');
  });
});
