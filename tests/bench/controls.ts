/** What a quiet machine does not change while a run lasts: nginx's cost of a request, and the time of a fixed loop. */

import { CONTENDERS } from './contenders.ts';
import { measureRound } from './measure.ts';
import { CONTENDER_CORE, type Place, spawnOn, start } from './processes.ts';
import { MODELS_ROW } from './rows.ts';
import { quantile } from './statistics.ts';

const REPETITIONS = 5;
const MOST_CHANGE = 0.1;
const LOOP = `
let sum = 0;
const startedAt = performance.now();
for (let step = 0; step < 5e7; step++) sum = (sum * 31 + step) | 0;
process.exitCode = sum === 1 ? 1 : 0;
console.log(performance.now() - startedAt);`;

export type Controls = Readonly<Record<'nginxMicroseconds' | 'loopMs', number>>;

export async function measureControls(place: Place): Promise<Controls> {
  const nginx = CONTENDERS.find(({ id }) => id === 'nginx');
  if (!nginx) throw new Error('there is no nginx among the contenders');
  await using running = await start(nginx, place);
  const costs: number[] = [];
  const times: number[] = [];
  for (let repetition = 0; repetition < REPETITIONS; repetition++) {
    costs.push((await measureRound(MODELS_ROW, running)).cpuMicroseconds);
    times.push(Number(await spawnOn(CONTENDER_CORE, [process.execPath, '-e', LOOP]).stdout.text()));
  }
  return { nginxMicroseconds: quantile(costs, 0.5), loopMs: quantile(times, 0.5) };
}

/** What has changed too much for figures that are published. */
export function changes(before: Controls, after: Controls): string[] {
  const names = ['nginxMicroseconds', 'loopMs'] as const;
  return names
    .filter((name) => !(Math.abs(after[name] / before[name] - 1) <= MOST_CHANGE))
    .map(
      (name) => `${name} went from ${before[name].toFixed(1)} to ${after[name].toFixed(1)} during the run`,
    );
}
