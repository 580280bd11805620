/** A crowd at a gateway for long: at one instance, or at two while Redis, the upstream and the instances restart. */

import { readFileSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { startVirtualMachine, type VirtualMachine } from '../deploy/virtual-machine.ts';
import { eventually } from '../support/eventually.ts';
import { sandboxSettings, startTestSandbox } from '../support/sandbox-account.ts';
import { type Attendance, Crowd } from './crowd.ts';
import { percentile, type Report } from './report.ts';
import { startLimitedGateway } from './rig.ts';
import type { Service } from './user.ts';

interface Run {
  readonly seconds: number;
  readonly attendance: Attendance;
  /** The length of what slow readers read. */
  readonly trackMs: number;
}

/** One gateway, or the machine with two. */
type Place = Pick<VirtualMachine, keyof Service | 'processes' | 'complaints'>;

/** What happens every so many seconds. */
type Disturbance = readonly [seconds: number, happen: (crowd: Crowd) => Promise<unknown>];

type Usage = Awaited<ReturnType<typeof usageOf>>;

const SAMPLES = 72;
const REDIS_AWAY_MS = 1000;
const UPSTREAM_AWAY_MS = 1500;
/** An upstream that comes back gets everybody's requests at once. */
const AFTERMATH_MS = 2000;
/** A token that expires between a refresh and the call that follows it is a 401 of the upstream's. */
const EXPIRY_MS = 1000;
/** A track of three minutes is there after 22 seconds. */
const SANDBOX = { pace: 8, accessTokenSeconds: 20, startingBalance: 1_000_000 };

export async function runOne(run: Run & { readonly memoryMb?: number }): Promise<Report> {
  await using sandbox = await startTestSandbox(SANDBOX);
  await using gateway = await startLimitedGateway(sandboxSettings(sandbox), run.memoryMb);
  const { sockets: atStart } = await usageOf(gateway.pid);
  const place = {
    base: new URL(gateway.url),
    sandbox,
    processes: () => [gateway.pid],
    complaints: () => gateway.errors().split('\n').filter(Boolean),
  };
  const report = await observe(run, place, [[run.seconds / 3, expiryAt(sandbox)]]);
  // Its connections to the upstream end, and all others have ended.
  await sandbox.upstream.restart(0);
  const areClosed = async () => (await usageOf(gateway.pid)).sockets <= atStart;
  await eventually(areClosed, `the gateway's sockets to be ${atStart} again`, 60_000);
  return report;
}

/** How often each happens: Redis restarts, the upstream restarts, and the instances are replaced. */
type Intervals = Readonly<Record<'redisSeconds' | 'upstreamSeconds' | 'upgradeSeconds', number>>;

export async function runTwo({ redisSeconds, upstreamSeconds, upgradeSeconds, ...run }: Run & Intervals) {
  await using sandbox = await startTestSandbox(SANDBOX);
  await using machine = await startVirtualMachine(sandbox);
  const restartUpstream = async () => {
    await sandbox.upstream.restart(UPSTREAM_AWAY_MS);
    await Bun.sleep(AFTERMATH_MS);
  };
  const upgrade = async (crowd: Crowd) => {
    await machine.replace('a');
    await machine.replace('b');
    await crowd.goesOn(1);
  };
  // Nobody upgrades while Redis is away: what an instance has refreshed meanwhile ends with it.
  let last = Promise.resolve();
  const inTurn = (work: (crowd: Crowd) => Promise<void>) => (crowd: Crowd) => {
    last = last.finally(() => work(crowd));
    return last;
  };
  return await observe(run, machine, [
    [redisSeconds, inTurn(() => machine.restartRedis(REDIS_AWAY_MS))],
    [upstreamSeconds, (crowd) => crowd.excuse(restartUpstream)],
    [upgradeSeconds, inTurn(upgrade)],
    [Math.min(40, run.seconds / 6), expiryAt(sandbox)],
  ]);
}

function expiryAt({ upstream }: Service['sandbox']) {
  const expire = async () => {
    upstream.expireAccessTokens();
    await Bun.sleep(EXPIRY_MS);
  };
  return (crowd: Crowd) => crowd.excuse(expire);
}

async function observe(run: Run, place: Place, disturbances: readonly Disturbance[]): Promise<Report> {
  const { seconds, attendance, trackMs } = run;
  const crowd = await Crowd.arrive(place, attendance, trackMs);
  const { problems } = crowd;
  const samples = new Map<number, Usage[]>();
  const begunAt = performance.now();
  const endsAt = begunAt + seconds * 1000;
  /** Does the work at each multiple of the interval. An interval that passes meanwhile is left out. */
  const every = async (intervalMs: number, work: () => Promise<unknown>) => {
    for (let next = begunAt + intervalMs; next < endsAt; next += intervalMs) {
      const waitMs = next - performance.now();
      if (waitMs < 0) continue;
      await Bun.sleep(waitMs);
      await problems.during('the schedule', work());
    }
  };
  const sample = async () => {
    for (const pid of place.processes()) {
      // A process may end meanwhile.
      const usage = await usageOf(pid).catch(() => undefined);
      if (usage) samples.set(pid, [...(samples.get(pid) ?? []), usage]);
    }
  };
  await Promise.all([
    every((seconds * 1000) / SAMPLES, sample),
    ...disturbances.map(([interval, happen]) => every(interval * 1000, () => happen(crowd))),
  ]);
  await crowd[Symbol.asyncDispose]();

  const { refusedRefreshes, generations } = place.sandbox.upstream.counts();
  if (refusedRefreshes) problems.add(`the upstream refused ${refusedRefreshes} refresh tokens`);
  if (generations > crowd.orders) problems.add(`${crowd.orders} orders became ${generations} creations`);
  for (const complaint of place.complaints()) problems.add(complaint.slice(0, 300));
  const mostGained = (figure: keyof Usage) =>
    Math.max(...samples.values().map((each) => growth(each.map((sample) => sample[figure]))));
  const figures = {
    rounds: crowd.rounds.reduce((sum, count) => sum + count),
    'most MB that an instance gained': mostGained('mb'),
    'most files that an instance gained': mostGained('files'),
  };
  return { figures, problems: problems.list() };
}

/** How much a value of one process has grown, from the second quarter of its samples to the last. */
function growth(values: readonly number[]): number {
  const quarter = Math.floor(values.length / 4);
  const [early, late] = [values.slice(quarter, 2 * quarter), values.slice(-quarter)];
  return quarter > 0 ? Math.round(percentile(late, 0.5) - percentile(early, 0.5)) : 0;
}

/** What Linux reports about a process. @see proc_pid_status(5): VmRSS, in kB */
async function usageOf(pid: number) {
  const mb = Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  const folder = `/proc/${pid}/fd`;
  // One that is closed meanwhile leads nowhere.
  const fileOf = (descriptor: string) => readlink(`${folder}/${descriptor}`).catch(() => '');
  const files = await Promise.all((await readdir(folder)).map(fileOf));
  return { mb, files: files.length, sockets: files.filter((file) => file.startsWith('socket:')).length };
}
