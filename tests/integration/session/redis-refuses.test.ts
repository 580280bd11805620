import { expect, it } from 'bun:test';
import { mkdir, readFile, rmdir } from 'node:fs/promises';
import type { Fact, ReplayStore } from '../../../src/gateway/refresh/store.ts';
import { eventually } from '../../support/eventually.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import { LEASE, RENEWAL, redisStoreAt } from '../../support/refresh-coordinator.ts';
import { describeWith } from '../../support/requirements.ts';

const REDIS_PAGE = await readFile(new URL('../../../deploy/redis/README.md', import.meta.url), 'utf8');
/** The user that the page tells operators to make; the last rule is a password. */
const [, USER = '', RULES = ''] = /^user (\S+) (.+) >\S+$/m.exec(REDIS_PAGE) ?? [];
const PASSWORD = 'pass:w@rd/1';
const KEY = 'music-gateway:k';

const setUser = (...rules: string[]) => ['ACL', 'SETUSER', USER, ...rules];
const configure = (...values: string[]) => ['CONFIG', 'SET', ...values];
const END_CONNECTIONS = ['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'];
const NOT_ALLOWED = /^RedisError (NOPERM|ERR)$/;
const CLOSED = /^RedisError ERR_REDIS_CONNECTION_CLOSED$/;

interface Trouble {
  readonly name: string;
  readonly begin: readonly string[][];
  readonly end: readonly string[][];
  /** The cause in the log. */
  readonly cause: RegExp;
}

const TROUBLES: Trouble[] = [
  {
    name: 'is full',
    begin: [configure('maxmemory', '1')],
    end: [configure('maxmemory', '0')],
    cause: /^RedisError OOM$/,
  },
  {
    name: 'has become a replica',
    begin: [['REPLICAOF', '127.0.0.1', '1']],
    end: [['REPLICAOF', 'NO', 'ONE']],
    cause: /^RedisError READONLY$/,
  },
  {
    name: 'misses its replicas',
    begin: [configure('min-replicas-to-write', '1')],
    end: [configure('min-replicas-to-write', '0')],
    cause: /^RedisError NOREPLICAS$/,
  },
  {
    name: 'does not respond for a while',
    begin: [['CLIENT', 'PAUSE', '5000']],
    end: [],
    // Of a command, or of a connection.
    cause: /^(TimeoutError|RedisError ERR_REDIS_CONNECTION_CLOSED)$/,
  },
  {
    name: 'has another password',
    begin: [setUser('resetpass', '>other'), END_CONNECTIONS],
    end: [setUser(`>${PASSWORD}`)],
    cause: CLOSED,
  },
  {
    name: 'does not know the user',
    begin: [['ACL', 'DELUSER', USER]],
    end: [setUser(...RULES.split(' '), `>${PASSWORD}`)],
    cause: CLOSED,
  },
  {
    name: 'allows the user no scripts',
    begin: [setUser('-eval')],
    end: [setUser('+eval')],
    cause: NOT_ALLOWED,
  },
  {
    name: 'allows the user other keys only',
    begin: [setUser('resetkeys', '~other:*')],
    end: [setUser('~music-gateway:*')],
    cause: NOT_ALLOWED,
  },
];

function instanceAt(url: string) {
  const heard: string[] = [];
  const store = redisStoreAt(url, { onDown: (cause) => heard.push(cause), onUp: () => heard.push('up') });
  const hears = (last: string | RegExp) =>
    eventually(() => heard.at(-1)?.match(last), `the observer to hear ${last}`);
  return { store, heard, hears };
}

/** A Redis with the documented user, and one instance that uses it. */
async function start() {
  const redis = await startRedis('--user', USER, ...RULES.split(' '), `>${PASSWORD}`);
  const admin = async (...commands: readonly string[][]) => {
    using client = new RedisAdmin(redis.url);
    for (const [command = '', ...values] of commands) await client.send(command, values);
  };
  const url = `redis://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${redis.port}`;
  const instance = () => instanceAt(url);
  return { redis, admin, instance, [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose]() };
}

function add(store: ReplayStore, to: Fact) {
  return store.swap('k', undefined, to, 60_000);
}

async function record({ url }: { readonly url: string }): Promise<string | null> {
  using client = new RedisAdmin(url);
  return (await client.get(KEY))?.replace(/^\d+ /, '') ?? null;
}

/** How many the documented user has. */
async function connections({ url }: { readonly url: string }): Promise<number> {
  using client = new RedisAdmin(url);
  return String(await client.send('CLIENT', ['LIST'])).split(` user=${USER} `).length - 1;
}

describeWith([REDIS_SERVER], 'an instance whose Redis', () => {
  it.each(TROUBLES)('$name goes on alone, says why, and is back', async (trouble) => {
    await using world = await start();
    const { redis, admin, instance } = world;
    const running = instance();
    await running.hears('up');
    await admin(...trouble.begin);
    expect(await add(running.store, RENEWAL)).toEqual({ isWritten: true });
    expect(await add(running.store, LEASE)).toMatchObject({ before: RENEWAL });
    await running.hears(trouble.cause);
    // One that starts now finds out at once, and not with its first refresh.
    const starting = instance();
    await starting.hears(trouble.cause);
    await admin(...trouble.end);
    for (const each of [running, starting]) {
      await each.hears('up');
      expect(each.heard.filter((cause) => cause !== 'up')).toHaveLength(1);
    }
    await add(starting.store, LEASE);
    expect(await record(redis)).toBe('leased:forged');
    // Every connection that was given up is closed.
    await eventually(async () => (await connections(redis)) === 2, 'one connection of each instance');
  });

  it.each(['+get', '+set', '+time', '+del'])(
    'does not allow the user %s counts as down from the start',
    async (rule) => {
      await using world = await start();
      await world.admin(setUser(rule.replace('+', '-')));
      await world.instance().hears(NOT_ALLOWED);
      expect(RULES.split(' ')).toContain(rule);
    },
  );

  it('has forgotten every script notices nothing', async () => {
    await using world = await start();
    const { store, heard, hears } = world.instance();
    await hears('up');
    await add(store, LEASE);
    await world.admin(['SCRIPT', 'FLUSH']);
    expect(await add(store, RENEWAL)).toMatchObject({ before: LEASE });
    expect(heard).toEqual(['up']);
  });

  it('loads its records goes on alone until they are loaded', async () => {
    await using redis = await startRedis('--rdbcompression', 'no');
    const ask = async (command: string, ...values: string[]) => {
      using client = new RedisAdmin(redis.url);
      return await client.send(command, values);
    };
    await ask('EVAL', `for i = 1, 200 do redis.call('SET', i, string.rep('x', 500)) end`, '0');
    await ask('SAVE');
    await redis.stop();
    const loaded = redis.start(
      '--key-load-delay',
      '10000',
      '--loading-process-events-interval-bytes',
      '1024',
    );
    const refusal = () => ask('PING').then(String, String);
    await eventually(async () => (await refusal()).includes('LOADING'), 'Redis to load');
    const starting = instanceAt(redis.url);
    await starting.hears(/^RedisError LOADING$/);
    await loaded;
    await starting.hears('up');
  });

  it('cannot save its data, as on a full disk, goes on alone until it can', async () => {
    await using redis = await startRedis('--save', '3600', '1');
    const obstacle = `${redis.folder}/dump.rdb`;
    await mkdir(obstacle);
    using admin = new RedisAdmin(redis.url);
    const save = async (status: string) => {
      await admin.send('BGSAVE', []);
      const hasEnded = async () => String(await admin.send('INFO', ['persistence'])).includes(status);
      await eventually(hasEnded, status);
    };
    await save('rdb_last_bgsave_status:err');
    const { hears } = instanceAt(redis.url);
    await hears(/^RedisError MISCONF$/);
    await rmdir(obstacle);
    await save('rdb_last_bgsave_status:ok');
    await hears('up');
  });

  it('listens on a socket and has a password is reached by both', async () => {
    await using redis = await startRedis('--unixsocket', 'redis.sock', '--requirepass', PASSWORD);
    const { promise: isUp, resolve } = Promise.withResolvers<void>();
    const url = `redis+unix://:${encodeURIComponent(PASSWORD)}@localhost${redis.folder}/redis.sock`;
    const store = redisStoreAt(url, { onUp: resolve });
    await isUp;
    await add(store, RENEWAL);
    expect(await record({ url })).toBe('renewed:x');
  });
});
