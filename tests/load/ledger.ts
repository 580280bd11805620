/** Whether anything costs more than the ledger has reserved for it: prints both, for each kind of work and several numbers. */

import { Problems, type Report } from './report.ts';
import { runStreams } from './streams.ts';
import type { Works } from './works.ts';

/** More than there is room for. */
const MOST: Works = {
  ...{ player: 700, reader: 100, stoppedGeneration: 100, largeBody: 22 },
  ...{ chunkedBody: 200, refresh: 20_000, call: 4000, longHead: 4000 },
};
const NUMBERS = [50, 200] as const;
const MOMENTS = ['while all wait', 'at peak'] as const;
/** What a process gains anyway, in KB: compiled code, and garbage that it collects only when memory is short. */
const GROWTH_KB = 24_000;

export async function reservedBesideCharged(): Promise<Report> {
  const figures: Record<string, string> = {};
  const problems = new Problems();
  for (const [work, most] of Object.entries(MOST)) {
    for (const number of new Set([...NUMBERS.map((each) => Math.min(each, most)), most])) {
      const load = { memoryMb: 256, seconds: 1, trackBytes: 10_000_000 };
      const { figures: measured, problems: others } = await runStreams({
        ...load,
        works: { [work]: number },
      });
      const killed = others.find((problem) => problem.startsWith('killed'));
      if (killed) problems.add(`${number} of ${work}: ${killed}`);
      const inFlight = Number(measured['waiting at once'] ?? 0);
      const pairs = MOMENTS.map((moment) => {
        const charged = Number(measured[`KB charged per work ${moment}`]);
        const reserved = Number(measured[`KB reserved per work ${moment}`]);
        // A peak with memory to spare is garbage.
        const counts = moment === 'while all wait' || number === most;
        if (counts && (charged - reserved) * inFlight > GROWTH_KB)
          problems.add(`${inFlight} of ${work} ${moment}: ${charged} KB charged, ${reserved} reserved`);
        return `${charged} of ${reserved} KB ${moment}`;
      });
      figures[`${number} of ${work}`] = killed ?? pairs.join(', ');
    }
  }
  return { figures, problems: problems.list() };
}
