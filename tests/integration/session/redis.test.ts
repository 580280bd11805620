import { expect, it } from 'bun:test';
import { systemClock } from '../../../src/gateway/refresh/clock.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import { readDocument } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { parseSamples } from '../../support/metrics.ts';
import { PATIENT_WITH_REDIS, REDIS_SERVER, type Redis, RedisAdmin, startRedis } from '../../support/redis.ts';
import { LEASE, newLedger, RENEWAL } from '../../support/refresh-coordinator.ts';
import { describeWith } from '../../support/requirements.ts';
import { Rotation } from '../../support/rotating-upstream.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { cookies, refreshes } from '../../support/session-calls.ts';
import { request, storedTokens } from '../../support/world.ts';

/** A gateway process with this upstream and Redis, and whether it can use Redis. */
async function startInstance({ upstreamUrl }: ScriptedUpstream, redis: Redis) {
  const metricsPort = await freePorts(1);
  const own = { BUN_OPTIONS: PATIENT_WITH_REDIS, METRICS_PORT: String(metricsPort) };
  const started = await startGatewayProcess({ ...own, UPSTREAM_URL: upstreamUrl, REDIS_URL: redis.url });
  const isRedisUp = async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return parseSamples(metrics).get('redis_up') === 1;
  };
  return { ...started, isRedisUp };
}

function session(gateway: { readonly url: string }, cookie: string): Promise<Response> {
  return request(`${gateway.url}/api/auth/session`, { cookie });
}

describeWith([REDIS_SERVER], 'two processes with Redis', () => {
  it('share a refresh, and keep no token there', async () => {
    await using redis = await startRedis();
    await using upstream = new ScriptedUpstream();
    new Rotation(upstream);
    await using first = await startInstance(upstream, redis);
    await using second = await startInstance(upstream, redis);
    // One that has waited for Redis in vain refreshes apart at first.
    for (const { isRedisUp } of [first, second]) await eventually(isRedisUp, 'the instance to reach Redis');
    const both = Array.from({ length: 20 }, (_, index) => session(index % 2 ? first : second, cookies(1)));
    for (const response of await Promise.all(both)) {
      expect([response.status, storedTokens(response)['svc_music_refresh']]).toEqual([200, 'refresh-2']);
    }
    await session(second, 'svc_music_refresh=refresh-2');
    expect(refreshes({ upstream })).toBe(2);

    using admin = new RedisAdmin(redis.url);
    const keys = await admin.kept();
    const values = await Promise.all(keys.map((key) => admin.get(key)));
    // What is sealed in a fact, and who can open it: unit/refresh-facts.
    expect(values.join()).toContain(' renewed:');
    for (const token of ['access-', 'refresh-']) expect([...keys, ...values].join()).not.toContain(token);
  });
});

describeWith([REDIS_SERVER], 'an instance whose Redis fails', () => {
  it('serves every request without Redis from the start and in between, and logs each change once', async () => {
    await using redis = await startRedis();
    await using upstream = new ScriptedUpstream();
    const rotation = new Rotation(upstream);
    await redis.stop();
    await using gateway = await startInstance(upstream, redis);
    /** Every user comes twice at once with an expired pair. */
    const visit = async (name: string) => {
      const users = Array.from({ length: 40 }, (_, index) => `${name}${index % 20}`);
      const visits = users.map((user) =>
        session(gateway, `svc_music_access=old; svc_music_refresh=${user}-1`),
      );
      for (const response of await Promise.all(visits)) expect(response.status).toBe(200);
    };
    const says = async (text: string, times: number) => {
      // Lines of the log may be written 100 ms later.
      await eventually(() => gateway.said(text) >= times, `the log to say "${text}"`);
      expect(gateway.said(text)).toBe(times);
    };
    await visit('alone');
    await says('Redis cannot be used', 1);
    await redis.start();
    await says('Redis can be used again', 1);
    await visit('up');
    using admin = new RedisAdmin(redis.url);
    expect(await admin.kept()).toHaveLength(40);
    await redis.stop();
    await visit('stopped');
    await says('Redis cannot be used', 2);
    // What was refreshed while Redis was up, and while it was down, is still known.
    for (const name of ['alone', 'up']) await visit(name);
    expect([refreshes({ upstream }), rotation.hasSeenReuse]).toEqual([60, false]);
  });
});

const PAGE = await readDocument('deploy/redis/README.md');
/** The user that the page tells operators to make; the last rule is a password. */
const [, USER = '', RULES = ''] = /^user (\S+) (.+) >\S+$/m.exec(PAGE.text) ?? [];
const PASSWORD = 'pass:w@rd/1';
const SET_USER = `ACL SETUSER ${USER}`;
const END_CONNECTIONS = 'CLIENT KILL TYPE normal SKIPME yes';

/** One Redis with that user, instances that use it, and a look into it. All of them end with the test. */
async function startWithUser() {
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
    await using world = await startWithUser();
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
