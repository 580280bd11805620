import { expect, it } from 'bun:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { REDIS_SERVER, type Redis, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { run } from '../virtual-machine.ts';

const CONFIGURATION = fileURLToPath(new URL('../../../deploy/redis/haproxy.cfg', import.meta.url));

/** Three sentinels that promote the replica of this Redis when two of them miss it. */
async function startSentinels(primary: Redis): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const first = await freePorts(3);
  for (const port of [first, first + 1, first + 2]) {
    const file = `${primary.folder}/sentinel-${port}.conf`;
    const lines = [
      `port ${port}`,
      `sentinel monitor music 127.0.0.1 ${primary.port} 2`,
      'sentinel down-after-milliseconds music 2000',
      'sentinel failover-timeout music 10000',
    ];
    await Bun.write(file, lines.join('\n'));
    stack.use(run([REDIS_SERVER.name, file, '--sentinel'], {}));
  }
  const knowsAll = async () =>
    String(await ask(`redis://127.0.0.1:${first}`, 'INFO', 'sentinel')).includes('slaves=1,sentinels=3');
  await eventually(knowsAll, 'the sentinels to know each other');
  return stack.move();
}

/** Sends a command on a connection of its own. Returns the text of an error as well. */
async function ask(url: string, command: string, ...values: string[]): Promise<unknown> {
  using client = new RedisAdmin(url);
  return await client.send(command, values).catch(String);
}

/** Waits until HAProxy, which sends INFO, has judged a server again. */
async function untilLookedAt({ url }: Redis): Promise<void> {
  let own = 0;
  const looks = async () => {
    const calls = /cmdstat_info:calls=(\d+)/.exec(String(await ask(url, 'INFO', 'commandstats')))?.[1];
    return Number(calls ?? 0) - own++;
  };
  const before = await looks();
  await eventually(async () => (await looks()) > before + 3, 'HAProxy to look at it several times');
}

describeWith([REDIS_SERVER, program('haproxy')], 'deploy/redis/haproxy.cfg', () => {
  it.each([
    ['that know nothing of each other', false],
    ['of which three sentinels promote the replica', true],
  ])('gives everybody the other one of two Redis servers %s', async (_, isReplicated) => {
    await using stack = new AsyncDisposableStack();
    const a = stack.use(await startRedis());
    const replica = isReplicated ? ['--replicaof', '127.0.0.1', String(a.port)] : [];
    const b = stack.use(await startRedis(...replica));
    if (isReplicated) stack.use(await startSentinels(a));
    const address = `127.0.0.1:${await freePorts(1)}`;
    const url = `redis://${address}`;
    const servers = { REDIS_A: `127.0.0.1:${a.port}`, REDIS_B: `127.0.0.1:${b.port}` };
    stack.use(run(['haproxy', '-db', '-f', CONFIGURATION], { REDIS_LISTEN: address, ...servers }));
    await eventually(async () => (await ask(url, 'SET', 'mark', 'first')) === 'OK', 'HAProxy to reach Redis');
    expect(await ask(a.url, 'GET', 'mark')).toBe('first');
    await untilLookedAt(b);
    const held = stack.use(new RedisAdmin(url));
    await held.send('PING', []);

    // It hangs, or it is gone.
    if (isReplicated) await a.stop();
    else a.stall();
    const responses = new Set<unknown>();
    const isBack = async () => {
      const response = await held.send('SET', ['mark', 'here']).catch(String);
      responses.add(response);
      return response === 'OK';
    };
    await eventually(isBack, 'a connection that was open to reach the other one');
    expect([...responses].join()).not.toContain('READONLY');
    expect(await ask(b.url, 'GET', 'mark')).toBe('here');

    // The first one is back, and takes itself for the primary.
    if (isReplicated) await a.start();
    else a.resume();
    await untilLookedAt(a);
    for (let times = 0; times < 5; times++) expect(await ask(url, 'GET', 'mark')).toBe('here');
  });
});
