/** Times one row with its contenders in turn, over and over, so that whatever disturbs the machine affects all alike. */

import { eventually } from '../support/eventually.ts';
import { accountOf, resetPeak } from './accounting.ts';
import type { Contender } from './contenders.ts';
import { load } from './load.ts';
import type { Running } from './processes.ts';
import type { Row } from './rows.ts';

/** Lines that have not arrived by then were dropped. */
const LOG_LIMIT_MS = 3000;

export type Measurement = Awaited<ReturnType<typeof measure>>[number];

/** Runs a step; an error becomes a problem of the run. */
export type Attempt = (name: string, step: () => Promise<void>) => Promise<void>;

/** Leaves out a contender that fails in any round. */
export async function measure(
  row: Row,
  entrants: ReadonlyMap<Contender, Running>,
  times: number,
  attempt: Attempt,
) {
  const results = [...entrants]
    .filter(([{ id }]) => row.contenders?.includes(id) ?? true)
    .map(([contender, running]) => ({ row, contender, running, rounds: Array.of<Round>() }));
  for (let round = 0; round < times; round++) {
    // Another contender begins each round, so that none always follows the same other.
    const first = round % results.length;
    for (const { contender, running, rounds } of [...results.slice(first), ...results.slice(0, first)]) {
      if (rounds.length < round) continue;
      await attempt(contender.title, async () => {
        // The compilers have done their work before the first of several rounds.
        if (round === 0 && times > 1) await load(row, running.url);
        if (round === 0) await resetPeak(running.pid);
        rounds.push(await measureRound(row, running));
      });
    }
  }
  return results.filter(({ rounds }) => rounds.length === times);
}

export type Round = Awaited<ReturnType<typeof measureRound>>;

async function measureRound(row: Row, { url, pid, written }: Running) {
  const { lines } = written();
  const before = await accountOf(pid);
  const result = await load(row, url);
  const after = await accountOf(pid);
  if (row.hasLog) {
    const what = `${result.requests} access lines`;
    await eventually(() => written().lines - lines >= result.requests, what, LOG_LIMIT_MS);
  }
  const cpuSeconds = after.cpuSeconds - before.cpuSeconds;
  return {
    cpuMicroseconds: (cpuSeconds / result.requests) * 1e6,
    requestsPerSecond: result.requests / result.seconds,
    busyPercent: (cpuSeconds / result.seconds) * 100,
    refusedPercent: result.refusedPercent,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    megabytesPerCpuSecond: result.bytes / 1e6 / cpuSeconds,
    peakMb: after.peakMb,
  };
}
