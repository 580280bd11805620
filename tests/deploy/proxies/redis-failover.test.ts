import { expect, it } from 'bun:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { REDIS_SERVER, type Redis, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { run } from '../virtual-machine.ts';

const CONFIGURATION = fileURLToPath(new URL('../../../deploy/redis/haproxy.cfg', import.meta.url));

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
    ['that know nothing of each other, when the first one hangs', false],
    ['of which one is promoted, as a sentinel does it, when the first one ends', true],
  ])('gives everybody the other one of two Redis servers %s', async (_, isReplicated) => {
    await using stack = new AsyncDisposableStack();
    const a = stack.use(await startRedis());
    const b = stack.use(await startRedis());
    if (isReplicated) await ask(b.url, 'REPLICAOF', '127.0.0.1', String(a.port));
    const address = `127.0.0.1:${await freePorts(1)}`;
    const url = `redis://${address}`;
    const servers = { REDIS_A: `127.0.0.1:${a.port}`, REDIS_B: `127.0.0.1:${b.port}` };
    stack.use(run(['haproxy', '-db', '-f', CONFIGURATION], { REDIS_LISTEN: address, ...servers }));
    await eventually(async () => (await ask(url, 'SET', 'mark', 'first')) === 'OK', 'HAProxy to reach Redis');
    expect(await ask(a.url, 'GET', 'mark')).toBe('first');
    await untilLookedAt(b);
    const held = stack.use(new RedisAdmin(url));
    await held.send('PING', []);

    const promote = async () => {
      await untilLookedAt(b);
      await ask(b.url, 'REPLICAOF', 'NO', 'ONE');
    };
    if (isReplicated) await a.stop();
    else a.stall();
    const promoted = isReplicated && promote();
    const responses = new Set<unknown>();
    const isBack = async () => {
      const response = await held.send('SET', ['mark', 'here']).catch(String);
      responses.add(response);
      return response === 'OK';
    };
    await eventually(isBack, 'a connection that was open to reach the other one');
    await promoted;
    expect([...responses].join()).not.toContain('READONLY');
    expect(await ask(b.url, 'GET', 'mark')).toBe('here');

    // The first one is back, and takes itself for the primary.
    if (isReplicated) await a.start();
    else a.resume();
    await untilLookedAt(a);
    for (let times = 0; times < 5; times++) expect(await ask(url, 'GET', 'mark')).toBe('here');
  });
});
