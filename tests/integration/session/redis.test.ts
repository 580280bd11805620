import { expect, it } from 'bun:test';
import { openLink } from '../../../src/gateway/refresh/redis-connection.ts';
import { CERTIFICATE } from '../../support/certificate.ts';
import { readDocument } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { REDIS_SERVER, type Redis, RedisAdmin, startRedis } from '../../support/redis.ts';
import { type RedisInstance, startInstance, startTwo } from '../../support/redis-instance.ts';
import { describeWith } from '../../support/requirements.ts';
import { Rotation } from '../../support/rotating-upstream.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { refreshes } from '../../support/session-calls.ts';
import { startSwallowingRelay } from '../../support/swallowing-relay.ts';
import { request, storedTokens } from '../../support/world.ts';

const PAGE = await readDocument('deploy/redis/README.md');
/** The user that the page tells operators to make; the last rule is a password. */
const [, USER = '', RULES = ''] = /^user (\S+) (.+) >\S+$/m.exec(PAGE.text) ?? [];
const PASSWORD = 'pass:w@rd/1';
const SECURED = ['--tls-auth-clients', 'no', '--tls-cert-file', CERTIFICATE, '--tls-key-file', CERTIFICATE];
const SET_USER = `ACL SETUSER ${USER}`;

type Act = (redis: Redis) => Promise<unknown>;

/** Checks the session of a user whose access cookie has expired: the upstream refuses a token that comes twice. */
async function visit({ url }: Pick<RedisInstance, 'url'>, user: string) {
  const response = await request(`${url}/api/auth/session`, { cookie: `svc_music_refresh=${user}-1` });
  expect([response.status, storedTokens(response)['svc_music_refresh']]).toEqual([200, `${user}-2`]);
}

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
    await visit(running, 'before');
    await begin(redis);
    // What was refreshed in Redis is still known.
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

  it.each<[what: string, options: readonly string[], url: string]>([
    ['plain', [], 'redis://127.0.0.1'],
    ['with a password', ['--requirepass', 'secret'], 'redis://:secret@127.0.0.1'],
    ['with TLS', SECURED, 'rediss://127.0.0.1'],
  ])('is behind a link that was dropped without a word shares on a new one: %s', async (_, options, url) => {
    const port = await freePorts(1);
    const isSecured = options === SECURED;
    await using redis = await startRedis(...options, ...(isSecured ? ['--tls-port', String(port)] : []));
    await using relay = await startSwallowingRelay(isSecured ? port : redis.port);
    await using upstream = new ScriptedUpstream();
    new Rotation(upstream);
    const others = { REDIS_PATIENCE: '4', NODE_EXTRA_CA_CERTS: CERTIFICATE };
    const start = () => startInstance(upstream.upstreamUrl, `${url}:${relay.port}`, others);
    await using one = await start();
    await using two = await start();
    const both = [one, two];
    for (const each of both) await eventually(each.isRedisUp, 'the instance to reach Redis');
    for (const each of both) await visit(each, 'before');
    relay.swallow();
    const users = ['ada', 'ben', 'cyd', 'before'];
    await Promise.all(users.flatMap((user) => both.map((each) => visit(each, user))));
    expect(refreshes({ upstream })).toBe(users.length);
    expect(both.map(({ said }) => said('Redis cannot be used'))).toEqual([0, 0]);
  });

  it('did not respond for a moment has what was refreshed meanwhile, for the other one', async () => {
    await using redis = await startRedis();
    await using upstream = new ScriptedUpstream();
    new Rotation(upstream);
    const others = { IDP_URL: upstream.identityProviderUrl, REDIS_PATIENCE: '4' };
    const both = await startTwo(upstream.upstreamUrl, redis.url, others);
    await using one = both[0];
    await using two = both[1];
    redis.stall();
    await visit(one, 'ada');
    redis.resume();
    using admin = new RedisAdmin(redis.url);
    const facts = async () => Promise.all((await admin.keys('*:fact:*')).map((key) => admin.get(key)));
    await eventually(async () => String(await facts()).includes(' renewed:'), 'Redis to have the refresh');
    await eventually(two.isRedisUp, 'the other one to reach Redis');
    await visit(two, 'ada');
    expect(refreshes({ upstream })).toBe(1);
  });

  it('has become the master, as its replica, is found on a new link', async () => {
    await using redis = await startRedis();
    await using replica = await startRedis('--replicaof', '127.0.0.1', String(redis.port));
    await using relay = await startSwallowingRelay(redis.port);
    await using upstream = new ScriptedUpstream();
    new Rotation(upstream);
    const url = `redis://127.0.0.1:${relay.port}`;
    await using one = await startInstance(upstream.upstreamUrl, url, { REDIS_PATIENCE: '4' });
    await eventually(one.isRedisUp, 'the instance to reach Redis');
    await visit(one, 'before');
    using admin = new RedisAdmin(replica.url);
    await eventually(async () => (await admin.keys('*:fact:*')).length === 1, 'the replica to have the fact');
    await send('REPLICAOF NO ONE')(replica);
    relay.swallow(replica.port);
    await Promise.all(['before', 'ada'].map((user) => visit(one, user)));
    expect([refreshes({ upstream }), one.said('Redis cannot be used')]).toEqual([2, 0]);
    expect(await admin.keys('*:fact:*')).toHaveLength(2);
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
