import { expect, it } from 'bun:test';
import { openLink } from '../../../src/gateway/refresh/redis-connection.ts';
import { readDocument } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { parseSamples } from '../../support/metrics.ts';
import { PATIENT_WITH_REDIS, REDIS_SERVER, type Redis, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { Rotation } from '../../support/rotating-upstream.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { refreshes } from '../../support/session-calls.ts';
import { request, storedTokens } from '../../support/world.ts';

/** A gateway process with this upstream and Redis, and whether it can use Redis. */
async function startInstance(UPSTREAM_URL: string, REDIS_URL: string) {
  const metricsPort = await freePorts(1);
  const own = { BUN_OPTIONS: PATIENT_WITH_REDIS, METRICS_PORT: String(metricsPort) };
  const started = await startGatewayProcess({ ...own, UPSTREAM_URL, REDIS_URL });
  const isRedisUp = async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return parseSamples(metrics).get('redis_up') === 1;
  };
  return { ...started, isRedisUp };
}

const PAGE = await readDocument('deploy/redis/README.md');
/** The user that the page tells operators to make; the last rule is a password. */
const [, USER = '', RULES = ''] = /^user (\S+) (.+) >\S+$/m.exec(PAGE.text) ?? [];
const PASSWORD = 'pass:w@rd/1';
const SET_USER = `ACL SETUSER ${USER}`;

type Act = (redis: Redis) => Promise<unknown>;

/** Sends the commands on a connection that no trouble breaks. */
function send(...commands: string[]): Act {
  return async ({ url }) => {
    using admin = new RedisAdmin(url);
    for (const command of commands) {
      const [name = '', ...values] = command.split(' ');
      await admin.send(name, values);
    }
  };
}

// That every command of the scripts is tried out: process/check-config.test.ts.
describeWith([REDIS_SERVER], 'an instance whose Redis', () => {
  it.each<[name: string, begin: Act, end: Act, cause: string]>([
    ['has ended', (redis) => redis.stop(), (redis) => redis.start(), 'ERR_REDIS_CONNECTION_CLOSED'],
    ['is full', send('CONFIG SET maxmemory 1'), send('CONFIG SET maxmemory 0'), 'OOM'],
    ['has become a replica', send('REPLICAOF 127.0.0.1 1'), send('REPLICAOF NO ONE'), 'READONLY'],
    [
      'has another password',
      send(`${SET_USER} resetpass >other`, 'CLIENT KILL TYPE normal SKIPME yes'),
      send(`${SET_USER} >${PASSWORD}`),
      'ERR_REDIS_CONNECTION_CLOSED',
    ],
    ['allows the user no scripts', send(`${SET_USER} -eval`), send(`${SET_USER} +eval`), 'NOPERM'],
  ])('%s goes on alone, says why, and shares again, with no token there', async (_, begin, end, cause) => {
    await using redis = await startRedis('--user', USER, ...RULES.split(' '), `>${PASSWORD}`);
    const url = `redis://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${redis.port}`;
    await using upstream = new ScriptedUpstream();
    new Rotation(upstream);
    await using running = await startInstance(upstream.upstreamUrl, url);
    await eventually(running.isRedisUp, 'the instance to reach Redis');
    const visit = async ({ url }: typeof running, user: string) => {
      const response = await request(`${url}/api/auth/session`, { cookie: `svc_music_refresh=${user}-1` });
      expect([response.status, storedTokens(response)['svc_music_refresh']]).toEqual([200, `${user}-2`]);
    };
    await visit(running, 'before');
    await begin(redis);
    // The upstream refuses a token that comes twice: what was refreshed in Redis is still known.
    for (const user of ['before', 'alone', 'alone']) await visit(running, user);
    // One that starts now finds out at once, and not with its first refresh.
    await using starting = await startInstance(upstream.upstreamUrl, url);
    const both = [running, starting];
    const says = ({ said }: typeof running) => said(`"cause":"RedisError ${cause}"`);
    for (const each of both) await eventually(() => says(each) === 1, `the log to name ${cause}`);
    await end(redis);
    for (const each of both) await eventually(each.isRedisUp, 'the instance to reach Redis again');
    expect(both.map(says)).toEqual([1, 1]);
    await visit(running, 'alone');
    await Promise.all([...both, ...both].map((each) => visit(each, 'shared')));
    expect(refreshes({ upstream })).toBe(3);
    using admin = new RedisAdmin(redis.url);
    const keys = await admin.keys('*');
    const kept = [...keys, ...(await Promise.all(keys.map((key) => admin.get(key))))].join();
    // What is sealed in a fact, and who can open it: unit/refresh-facts.
    expect(kept).toContain(' renewed:');
    expect(kept).not.toMatch(/(?:access|before|alone|shared)-/);
    // Every connection that was given up is closed.
    const users = async () => String(await admin.send('CLIENT', ['LIST'])).match(/(?<= user=)\S+/g) ?? [];
    const isOneEach = async () => (await users()).filter((user) => user === USER).length === 2;
    await eventually(isOneEach, 'one connection of each instance');
  });

  it('responds while it stands still gets its connection all the same', async () => {
    await using redis = await startRedis();
    const link = openLink(redis.url);
    const connected = link.connect();
    // As the start of a gateway does on a busy machine.
    Bun.sleepSync(1500);
    await connected;
    expect(await link.send('PING', [])).toBe('PONG');
    link.close();
  });
});
