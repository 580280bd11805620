/** Times one work with its contenders in turn, over and over, so that whatever disturbs the machine meets all alike. */

import { accountOf, forgetPeak } from './accounting.ts';
import { load } from './load.ts';
import type { Running } from './running.ts';
import { type Figure, figureOf } from './statistics.ts';
import type { Work } from './work.ts';

export interface Pace {
  readonly rounds: number;
  readonly seconds: number;
  /** So that compilers have done their work. */
  readonly warmUpSeconds: number;
}

export interface Measurement {
  readonly work: string;
  readonly contender: string;
  /** CPU time of the contender for one request, user and system. */
  readonly cpuMicroseconds: Figure;
  readonly requestsPerSecond: Figure;
  readonly p50Ms: Figure;
  readonly p99Ms: Figure;
  /** The part of its core that it used: less than 1 means that load or upstream were the limit. */
  readonly busy: Figure;
  readonly megabytesPerCpuSecond: Figure;
  /** The most during this work, in any round. */
  readonly peakMb: number;
}

/** Of the contender, by its id. */
export type RunningContenders = ReadonlyMap<string, Running>;

type Round = Readonly<Record<'cpu' | 'rate' | 'p50' | 'p99' | 'busy' | 'megabytes' | 'peakMb', number>>;

export function measurementOf(
  measurements: readonly Measurement[],
  work: string,
  contender: string,
): Measurement | undefined {
  return measurements.find((each) => each.work === work && each.contender === contender);
}

export interface Measured {
  readonly measurements: readonly Measurement[];
  /** Contenders that failed under load, and how. */
  readonly problems: readonly string[];
}

export async function measure(
  work: Work,
  contenders: RunningContenders,
  { rounds, seconds, warmUpSeconds }: Pace,
  folder: string,
): Promise<Measured> {
  const participants = new Map(
    [...contenders].filter(([id]) => !work.contenders || work.contenders.includes(id)),
  );
  const results = new Map<string, Round[]>();
  const problems: string[] = [];
  const unlessItFails = async (id: string, step: () => Promise<void>) => {
    try {
      await step();
    } catch (error) {
      problems.push(`${id}: ${error instanceof Error ? error.message : error}`);
      participants.delete(id);
      results.delete(id);
    }
  };
  for (const [id, { url, pid }] of [...participants]) {
    await unlessItFails(id, async () => {
      if (warmUpSeconds) await load(work, url, warmUpSeconds, folder);
      await forgetPeak(pid);
      results.set(id, []);
    });
  }
  for (let round = 0; round < rounds; round++) {
    for (const [id, running] of rotated([...participants], round)) {
      await unlessItFails(id, async () => {
        results.get(id)?.push(await oneRound(work, running, seconds, folder));
      });
    }
  }
  const measurements = [...results].map(([id, each]) => summaryOf(work.id, id, each));
  return { measurements, problems };
}

function summaryOf(work: string, contender: string, rounds: readonly Round[]): Measurement {
  const figure = (name: keyof Round) => figureOf(rounds.map((round) => round[name]));
  return {
    work,
    contender,
    cpuMicroseconds: figure('cpu'),
    requestsPerSecond: figure('rate'),
    p50Ms: figure('p50'),
    p99Ms: figure('p99'),
    busy: figure('busy'),
    megabytesPerCpuSecond: figure('megabytes'),
    peakMb: figure('peakMb').most,
  };
}

async function oneRound(work: Work, { url, pid }: Running, seconds: number, folder: string): Promise<Round> {
  const before = await accountOf(pid);
  const spell = await load(work, url, seconds, folder);
  const after = await accountOf(pid);
  const cpuSeconds = after.cpuSeconds - before.cpuSeconds;
  const count = work.countedByBytes ? spell.bytes / work.bodyBytes : spell.requests;
  return {
    cpu: (cpuSeconds / count) * 1e6,
    rate: count / spell.seconds,
    p50: spell.p50Ms,
    p99: spell.p99Ms,
    busy: cpuSeconds / spell.seconds,
    megabytes: spell.bytes / 1e6 / cpuSeconds,
    peakMb: after.peakMb,
  };
}

/** Nobody is always the one after the same other. */
function rotated<Item>(items: readonly Item[], by: number): Item[] {
  const start = by % Math.max(1, items.length);
  return [...items.slice(start), ...items.slice(0, start)];
}
