/** Whether anything costs more than the ledger has reserved for it: prints both, for each kind and several numbers. */

import { Problems, type Report } from './report.ts';
import { type Load, runStreams } from './streams.ts';
import type { WorkName } from './works.ts';

interface Kind {
  readonly work: WorkName;
  /** More than there is room for. */
  readonly most: number;
}

const KINDS: Readonly<Record<string, Kind>> = {
  'a slice': { work: 'player', most: 700 },
  'a streamed body': { work: 'reader', most: 100 },
  'a generation': { work: 'stoppedGeneration', most: 100 },
  'a large request body': { work: 'largeBody', most: 22 },
  'a request body in chunks': { work: 'chunkedBody', most: 200 },
  'a fact': { work: 'refresh', most: 20_000 },
  'a call': { work: 'call', most: 4000 },
  'a call with a long head': { work: 'longHead', most: 4000 },
};
const NUMBERS = [50, 200] as const;
const MOMENTS = ['while all wait', 'at peak'] as const;
/** What a process gains anyway, in KB: compiled code, and garbage that it collects only when memory is short. */
const GROWTH_KB = 24_000;

export async function reservedBesideCharged(): Promise<Report> {
  const figures: Record<string, string> = {};
  const problems = new Problems();
  for (const [name, { work, most }] of Object.entries(KINDS)) {
    for (const number of new Set([...NUMBERS.map((each) => Math.min(each, most)), most])) {
      const load: Load = { works: { [work]: number }, memoryMb: 256, seconds: 1, trackBytes: 10_000_000 };
      const { figures: measured, problems: others } = await runStreams(load);
      const killed = others.find((problem) => problem.startsWith('killed'));
      if (killed) problems.add(`${number} of ${name}: ${killed}`);
      const inFlight = Number(measured['waiting at once'] ?? 0);
      const pairs = MOMENTS.map((moment) => {
        const charged = Number(measured[`KB charged per work ${moment}`]);
        const reserved = Number(measured[`KB reserved per work ${moment}`]);
        // A peak with memory to spare is garbage.
        const counts = moment === 'while all wait' || number === most;
        if (counts && (charged - reserved) * inFlight > GROWTH_KB)
          problems.add(`${inFlight} of ${name} ${moment}: ${charged} KB charged, ${reserved} reserved`);
        return `${charged} of ${reserved} KB ${moment}`;
      });
      figures[`${number} of ${name}`] = killed ?? pairs.join(', ');
    }
  }
  return { figures, problems: problems.list() };
}
