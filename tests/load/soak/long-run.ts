/** Two instances on one machine in service for long, while Redis, the upstream and the instances themselves restart. */

import { memoryOf, openFilesOf, openSocketsOf } from '../../support/process-status.ts';
import { type Instance, startVirtualMachine, type VirtualMachine } from '../../support/virtual-machine.ts';
import { type Attendance, Everybody } from './everybody.ts';
import { type Figures, type Outcome, percentile } from './outcome.ts';
import { growth, type Sample, Timeline } from './timeline.ts';

export interface LongRun {
  readonly durationMs: number;
  readonly redisEveryMs: number;
  readonly upstreamEveryMs: number;
  /** Each instance is replaced, one after the other. */
  readonly upgradesEveryMs: number;
  readonly sampleEveryMs: number;
  readonly attendance: Attendance;
}

const REDIS_AWAY_MS = 1000;
const UPSTREAM_AWAY_MS = 3000;
/** An upstream that comes back gets everybody's requests at once. */
const AFTERMATH_MS = 2000;
const ACCESS_TOKEN_SECONDS = 20;
/** A track of three minutes is there after 22 seconds. */
const PACE = 8;
/** Tokens that expire between a refresh and the call that follows it are a 401 of the upstream's. */
const EXPIRY_MS = 1000;

export async function longRun(run: LongRun): Promise<Outcome<Figures>> {
  await using machine = await startVirtualMachine({ accessTokenSeconds: ACCESS_TOKEN_SECONDS, pace: PACE });
  await machine.startBoth();
  const { upstream } = machine.sandbox;
  await using everybody = await Everybody.arrive(machine, run.attendance);
  const { problems } = everybody;
  const timeline = new Timeline();
  const endsAt = performance.now() + run.durationMs;
  /** Does the work at each multiple of the interval. An interval that passes meanwhile is left out. */
  const every = async (intervalMs: number, work: () => Promise<void>) => {
    for (let next = performance.now() + intervalMs; next < endsAt; next += intervalMs) {
      const waitMs = next - performance.now();
      if (waitMs < 0) continue;
      await Bun.sleep(waitMs);
      await problems.during('the schedule', work());
    }
  };
  await Promise.all([
    every(run.redisEveryMs, async () => {
      timeline.mark('R');
      await machine.restartRedis(REDIS_AWAY_MS);
    }),
    every(run.upstreamEveryMs, async () => {
      timeline.mark('U');
      const isBack = everybody.excuse();
      await upstream.restart(UPSTREAM_AWAY_MS);
      await Bun.sleep(AFTERMATH_MS);
      isBack();
    }),
    every(run.upgradesEveryMs, async () => {
      for (const name of ['a', 'b'] as const) {
        timeline.mark(name);
        await machine.replace(name);
      }
    }),
    every(run.sampleEveryMs * 4, async () => {
      const isOver = everybody.excuse();
      upstream.expireAccessTokens();
      await Bun.sleep(EXPIRY_MS);
      isOver();
    }),
    every(run.sampleEveryMs, async () => timeline.add(await sample(machine, everybody))),
  ]);
  await everybody.leave();

  const { refreshes, refusedRefreshes, signIns, generations } = upstream.counts();
  if (refusedRefreshes) problems.add(`the upstream refused ${refusedRefreshes} refresh tokens`);
  if (generations > everybody.orders)
    problems.add(`${everybody.orders} orders became ${generations} creations`);
  const missedRedis: string[] = [];
  for (const name of ['a', 'b'] as const) {
    const log = await machine.log(name);
    missedRedis.push(...outages(log).map((outage) => `${name} ${outage}`));
    const errors = log
      .split('\n')
      .filter((line) => line.includes('"level":"error"') || line.includes('"refreshTokenReused"'));
    if (errors.length)
      problems.add(`${errors.length} lines in the log of ${name}: ${errors[0]?.slice(0, 300)}`);
  }
  const figures = {
    'rounds by kind': list(everybody.served),
    'excused while the upstream restarted': list(everybody.excused),
    'signed out': everybody.signedOut,
    'without Redis': missedRedis.join(', '),
    'refreshes, sign-ins, creations upstream': `${refreshes}, ${signIns}, ${generations}`,
    'most MB that an instance gained': growth(timeline.samples, ({ memoryMb }) => memoryMb),
    'most files that an instance gained': growth(timeline.samples, ({ files }) => files),
    'p99 ms of session checks: first, last third': timeline.thirds(({ p99Ms }) => p99Ms).join(', '),
  };
  return { figures, problems: problems.list(), plot: timeline.plot() };
}

/** When an instance lost Redis, and why. */
function outages(log: string): string[] {
  const lines = log.matchAll(/"time":"[^T]*T(.{8})[^\n]*"cause":"([^"]*)","msg":"Redis cannot be used/g);
  return [...lines].map(([, time, cause]) => `${time} ${cause}`);
}

async function sample(machine: VirtualMachine, everybody: Everybody): Promise<Sample> {
  const durations = everybody.takeCheckMs();
  return {
    a: await statusOf(machine, 'a'),
    b: await statusOf(machine, 'b'),
    p50Ms: percentile(durations, 0.5),
    p99Ms: percentile(durations, 0.99),
    checks: durations.length,
  };
}

async function statusOf(machine: VirtualMachine, name: Instance) {
  const pid = await machine.processId(name);
  if (pid === undefined) return undefined;
  try {
    const { rssMb } = await memoryOf(pid);
    return { pid, memoryMb: rssMb, files: await openFilesOf(pid), sockets: await openSocketsOf(pid) };
  } catch {
    // It has stopped meanwhile.
    return undefined;
  }
}

function list(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ') || 'none';
}
