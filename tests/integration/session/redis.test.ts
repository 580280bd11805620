import { expect, it } from 'bun:test';
import { readDocument } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { parseSamples } from '../../support/metrics.ts';
import { PATIENT_WITH_REDIS, REDIS_SERVER, type Redis, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { Rotation } from '../../support/rotating-upstream.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { cookies, refreshes } from '../../support/session-calls.ts';
import { request, storedTokens } from '../../support/world.ts';

/** A gateway process with this upstream and Redis, and whether it can use Redis. */
async function startInstance({ upstreamUrl }: ScriptedUpstream, redis: Pick<Redis, 'url'>) {
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
    const keys = await admin.keys('*');
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
    expect(await admin.keys('*')).toHaveLength(40);
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

// That every command of the scripts is tried out: process/check-config.test.ts.
describeWith([REDIS_SERVER], 'an instance whose Redis', () => {
  it.each<[name: string, begin: string[], end: string, cause: string]>([
    ['is full', ['CONFIG SET maxmemory 1'], 'CONFIG SET maxmemory 0', 'OOM'],
    ['has become a replica', ['REPLICAOF 127.0.0.1 1'], 'REPLICAOF NO ONE', 'READONLY'],
    [
      'has another password',
      [`${SET_USER} resetpass >other`, 'CLIENT KILL TYPE normal SKIPME yes'],
      `${SET_USER} >${PASSWORD}`,
      'ERR_REDIS_CONNECTION_CLOSED',
    ],
    ['allows the user no scripts', [`${SET_USER} -eval`], `${SET_USER} +eval`, 'NOPERM'],
  ])('%s goes on alone, says why, and is back', async (_, begin, end, cause) => {
    await using redis = await startRedis('--user', USER, ...RULES.split(' '), `>${PASSWORD}`);
    const url = `redis://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${redis.port}`;
    await using upstream = new ScriptedUpstream();
    new Rotation(upstream);
    await using running = await startInstance(upstream, { url });
    await eventually(running.isRedisUp, 'the instance to reach Redis');
    /** By a connection that no trouble breaks. */
    const ask = async (command: string) => {
      const [name = '', ...values] = command.split(' ');
      using admin = new RedisAdmin(redis.url);
      return String(await admin.send(name, values));
    };
    for (const command of begin) await ask(command);
    expect((await session(running, 'svc_music_refresh=ada-1')).status).toBe(200);
    // One that starts now finds out at once, and not with its first refresh.
    await using starting = await startInstance(upstream, { url });
    const both = [running, starting];
    const says = ({ said }: typeof running) => said(`"cause":"RedisError ${cause}"`);
    for (const each of both) await eventually(() => says(each) === 1, `the log to name ${cause}`);
    await ask(end);
    for (const each of both) await eventually(each.isRedisUp, 'the instance to reach Redis again');
    expect(both.map(says)).toEqual([1, 1]);
    for (const each of both) expect((await session(each, 'svc_music_refresh=ben-1')).status).toBe(200);
    expect(refreshes({ upstream })).toBe(2);
    // Every connection that was given up is closed.
    const connections = async () => (await ask('CLIENT LIST')).split(` user=${USER} `).length - 1;
    await eventually(async () => (await connections()) === 2, 'one connection of each instance');
  });
});
