/** A balancer in front of instances, and what a request takes of each process. */

import { accountOf } from './accounting.ts';
import { OTHER_CORE, type Place, type Running, start } from './processes.ts';
import { number } from './statistics.ts';

const BALANCER = {
  program: 'haproxy',
  args: ['-db', '-f', '{{folder}}/configuration'],
  template: 'balancer.cfg',
};

export function startBalancer(instances: readonly Running[], place: Place): Promise<Running> {
  const servers = instances.map(({ url }, index) => `server gateway-${index} ${new URL(url).host}`);
  return start({ ...BALANCER, values: { servers: servers.join('\n  ') } }, place, OTHER_CORE);
}

/** Of all of them together, in microseconds. */
export async function cpuOf(processes: readonly Running[]): Promise<number> {
  const accounts = await Promise.all(processes.map(({ pid }) => accountOf(pid)));
  return accounts.reduce((sum, { cpuSeconds }) => sum + cpuSeconds * 1e6, 0);
}

/** Loads for a second, then counts what a longer load takes. */
export async function measureRequests<Name extends string>(
  load: (seconds: number) => Promise<{ readonly requests: number; readonly seconds: number }>,
  account: () => Promise<Readonly<Record<Name, number>>>,
  isQuick: boolean,
) {
  await load(1);
  const before = await account();
  const { requests, seconds } = await load(isQuick ? 1 : 4);
  const after = await account();
  return {
    perSecond: number(requests / seconds),
    each: (name: Name, divisor = 1) => number((after[name] - before[name]) / requests / divisor),
  };
}
