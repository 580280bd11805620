/** What sharing refreshes costs: 1, 2 and 4 instances behind a balancer, with one Redis. */

import { RedisClient } from 'bun';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { cpuOf, measureRequests, startBalancer } from './balancer.ts';
import type { Contender } from './contenders.ts';
import { load } from './load.ts';
import { OTHER_CORE, type Place, type Running, spawnOn, start } from './processes.ts';
import { MODELS_ROW, REFRESH_ROW, SIGN_IN_ROW } from './rows.ts';

export const INSTANCES = {
  id: 'instances',
  title: 'Instances behind a balancer, with Redis: what each request takes',
  columns: [
    '',
    'a second',
    'CPU µs: gateways',
    'balancer',
    'Redis',
    'Redis commands',
    'KB sent to Redis',
    'KB kept there',
  ],
  contenders: ['gateway'],
  needs: ['redis-server', 'haproxy'],
  lines: measureInstances,
};

/** All instances run on the one core that contenders have: so the CPU time tells something, requests a second little. */
async function measureInstances(contender: Contender, place: Place, isQuick: boolean): Promise<string[][]> {
  const lines: string[][] = [];
  for (const count of isQuick ? [2] : [1, 2, 4]) {
    await using stack = new AsyncDisposableStack();
    const redis = stack.use(await startRedis());
    const env = { ...contender.env, REDIS_URL: redis.url };
    const instances: Running[] = [];
    while (instances.length < count) instances.push(stack.use(await start({ ...contender, env }, place)));
    const balancer = stack.use(await startBalancer(instances, place));
    const account = async () => ({
      gateways: await cpuOf(instances),
      balancer: await cpuOf([balancer]),
      ...(await redis.account()),
    });
    for (const row of [MODELS_ROW, SIGN_IN_ROW, REFRESH_ROW]) {
      const { each, perSecond } = await measureRequests(
        (seconds) => load(row, balancer.url, seconds),
        account,
        isQuick,
      );
      lines.push([
        `${contender.title}, ${count} of it: ${row.title}`,
        perSecond,
        each('gateways'),
        each('balancer'),
        each('redis'),
        each('commands'),
        each('bytesReceived', 1024),
        each('bytesKept', 1024),
      ]);
    }
  }
  return lines;
}

async function startRedis() {
  const port = await freePorts(1);
  const command = `redis-server --port ${port} --bind 127.0.0.1 --save  --appendonly no`;
  const server = spawnOn(OTHER_CORE, command.split(' '));
  const url = `redis://127.0.0.1:${port}`;
  const client = new RedisClient(url);
  await eventually(
    () =>
      client.connect().then(
        () => true,
        () => false,
      ),
    'Redis',
  );
  return {
    url,
    /** @see https://redis.io/docs/latest/commands/info/ */
    async account() {
      const text = `${await client.send('INFO', ['everything'])}`;
      const field = (pattern: string) => Number(new RegExp(`^${pattern}([\\d.]+)`, 'm').exec(text)?.[1] ?? 0);
      return {
        redis: (field('used_cpu_user:') + field('used_cpu_sys:')) * 1e6,
        // Commands that a script runs are part of its own.
        commands: field('cmdstat_eval:calls='),
        bytesReceived: field('total_net_input_bytes:'),
        bytesKept: field('used_memory_dataset:'),
      };
    },
    async [Symbol.asyncDispose]() {
      client.close();
      server.kill('SIGKILL');
      await server.exited;
    },
  };
}
