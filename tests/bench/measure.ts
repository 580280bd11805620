/** Times rows and contenders in turn, round by round, so that whatever disturbs the machine affects all alike. */

import { eventually } from '../support/eventually.ts';
import { accountOf, resetPeak } from './accounting.ts';
import type { Contender } from './contenders.ts';
import { load } from './load.ts';
import type { Running } from './processes.ts';
import type { Row } from './rows.ts';

/** Lines that have not arrived by then were dropped. */
const LOG_LIMIT_MS = 3000;
/** Before each row, so that it does not pay for the garbage of the one before. */
const REST_MS = 200;

export interface Entrant {
  readonly row: Row;
  readonly contender: Contender;
  readonly running: Running;
}

/** Runs a step; an error becomes a problem of the run. */
export type Attempt = (name: string, step: () => Promise<void>) => Promise<void>;

export type Measurement = Awaited<ReturnType<typeof measure>>[number];

/** Leaves out a contender for the row in which it failed. */
export async function measure(entrants: readonly Entrant[], times: number, attempt: Attempt) {
  const all = entrants.map((entrant) => ({ ...entrant, rounds: Array.of<Round>() }));
  // The compilers do their work in a round before the first of several; it is not counted.
  const uncounted = times > 1 ? 1 : 0;
  for (let round = 0; round < times + uncounted; round++) {
    console.log(`round ${round + 1} of ${times + uncounted}`);
    for (const ofRow of Map.groupBy(all, ({ row }) => row).values()) {
      await Bun.sleep(REST_MS);
      // Another contender begins each round, so that none always follows the same other.
      const first = round % ofRow.length;
      for (const { row, contender, running, rounds } of [...ofRow.slice(first), ...ofRow.slice(0, first)]) {
        if (rounds.length < round) continue;
        await attempt(contender.title, async () => {
          rounds.push(await measureRound(row, running));
        });
      }
    }
  }
  return all
    .filter(({ rounds }) => rounds.length === times + uncounted)
    .map(({ row, contender, rounds }) => ({ row, contender, rounds: rounds.slice(uncounted) }));
}

/** Of each round, what the one needed as a multiple of the other. */
export function pairedRatios(one: Measurement, other: Measurement): number[] {
  return one.rounds.map(
    ({ cpuMicroseconds }, round) => cpuMicroseconds / (other.rounds[round]?.cpuMicroseconds ?? Number.NaN),
  );
}

export type Round = Awaited<ReturnType<typeof measureRound>>;

export async function measureRound(row: Row, { url, pid, written }: Running) {
  await resetPeak(pid);
  const { lines } = written();
  const before = await accountOf(pid);
  const result = await load(row, url);
  const after = await accountOf(pid);
  if (row.setup === 'log') {
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
