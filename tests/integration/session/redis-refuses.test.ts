import { expect, it } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { systemClock } from '../../../src/gateway/refresh/clock.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import { eventually } from '../../support/eventually.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import { LEASE, newLedger, RENEWAL } from '../../support/refresh-coordinator.ts';
import { describeWith } from '../../support/requirements.ts';

const REDIS_PAGE = await readFile(new URL('../../../deploy/redis/README.md', import.meta.url), 'utf8');
/** The user that the page tells operators to make; the last rule is a password. */
const [, USER = '', RULES = ''] = /^user (\S+) (.+) >\S+$/m.exec(REDIS_PAGE) ?? [];
const PASSWORD = 'pass:w@rd/1';
const SET_USER = `ACL SETUSER ${USER}`;
const END_CONNECTIONS = 'CLIENT KILL TYPE normal SKIPME yes';
const NOT_ALLOWED = /^RedisError (NOPERM|ERR)$/;
const CLOSED = /^RedisError ERR_REDIS_CONNECTION_CLOSED$/;
/** No time limit, so that a busy machine is not taken for a Redis that is down. */
const PATIENT = { ...systemClock, every: () => () => {} };

/** One Redis, instances that use it, and a look into it. All of them end with the test. */
async function start(...options: string[]) {
  const redis = await startRedis(...options);
  let hasEnded = false;
  /** Once the test has ended, no instance connects again. */
  const clock = {
    ...PATIENT,
    sleep: (ms: number) => (hasEnded ? new Promise<never>(() => {}) : systemClock.sleep(ms)),
  };
  /** By connections that no trouble breaks. */
  const ask = async (...commands: string[]) => {
    let reply: unknown;
    for (const each of commands) {
      const [command = '', ...values] = each.split(' ');
      using client = new RedisAdmin(redis.url);
      reply = await client.send(command, values);
    }
    return String(reply);
  };
  const instance = (url: string) => {
    const heard: string[] = [];
    const observer = { onDown: (cause: string) => heard.push(cause), onUp: () => heard.push('up') };
    const store = new RedisReplayStore(new RedisConnection(url, observer, clock), newLedger());
    const add = (to: typeof RENEWAL) => store.swap('k', undefined, to, 60_000);
    const hears = (last: string | RegExp) => eventually(() => heard.at(-1)?.match(last), `to hear ${last}`);
    return { add, heard, hears };
  };
  const end = async () => {
    hasEnded = true;
    await redis[Symbol.asyncDispose]();
  };
  return { redis, ask, instance, [Symbol.asyncDispose]: end };
}

/** With the documented user. */
async function startWithUser() {
  const world = await start('--user', USER, ...RULES.split(' '), `>${PASSWORD}`);
  const url = `redis://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${world.redis.port}`;
  return { ...world, instance: () => world.instance(url) };
}

describeWith([REDIS_SERVER], 'an instance whose Redis', () => {
  it.each<[name: string, begin: string[], end: string, cause: RegExp]>([
    ['is full', ['CONFIG SET maxmemory 1'], 'CONFIG SET maxmemory 0', /^RedisError OOM$/],
    ['has become a replica', ['REPLICAOF 127.0.0.1 1'], 'REPLICAOF NO ONE', /^RedisError READONLY$/],
    [
      'has another password',
      [`${SET_USER} resetpass >other`, END_CONNECTIONS],
      `${SET_USER} >${PASSWORD}`,
      CLOSED,
    ],
    ['allows the user no scripts', [`${SET_USER} -eval`], `${SET_USER} +eval`, NOT_ALLOWED],
  ])('%s goes on alone, says why, and is back', async (_, begin, end, cause) => {
    await using world = await startWithUser();
    const running = world.instance();
    await running.hears('up');
    await world.ask(...begin);
    expect(await running.add(RENEWAL)).toEqual({ isWritten: true });
    expect(await running.add(LEASE)).toMatchObject({ before: RENEWAL });
    await running.hears(cause);
    // One that starts now finds out at once, and not with its first refresh.
    const starting = world.instance();
    await starting.hears(cause);
    await world.ask(end);
    for (const each of [running, starting]) {
      await each.hears('up');
      expect(each.heard.filter((heard) => heard !== 'up')).toHaveLength(1);
    }
    await starting.add(LEASE);
    expect(await world.ask('GET music-gateway:k')).toEndWith(' leased:forged');
    // Every connection that was given up is closed.
    const connections = async () => (await world.ask('CLIENT LIST')).split(` user=${USER} `).length - 1;
    await eventually(async () => (await connections()) === 2, 'one connection of each instance');
  });

  it.each(['get', 'set', 'time', 'del'])(
    'does not allow the user %s counts as down from the start',
    async (command) => {
      await using world = await startWithUser();
      await world.ask(`${SET_USER} -${command}`);
      await world.instance().hears(NOT_ALLOWED);
      expect(RULES.split(' ')).toContain(`+${command}`);
    },
  );
});
