/** Lists one-line mutants for `mutants.ts`: those whose line is still there stay, and chosen ones take the place of the rest. */

import { Glob } from 'bun';
import { isStale, type Mutant, ROOMS, read, write } from './list.ts';
import { lineOf, mutantsOf, onePerLine } from './operators.ts';

const known = await read();
const stale = await Promise.all(known.map(isStale));
const kept = known.filter((_, index) => !stale[index]);
const added: Mutant[] = [];
for (const [room, [count, sources]] of Object.entries(ROOMS)) {
  const candidates: Mutant[] = [];
  for await (const file of new Glob(sources).scan()) {
    const lines = (await Bun.file(file).text()).split('\n');
    // A line that stands there twice could not be found again.
    const unique = lines.filter((line) => lines.indexOf(line) === lines.lastIndexOf(line));
    candidates.push(...unique.flatMap((line) => [...mutantsOf(room, file, line)]));
  }
  const perLine = onePerLine(candidates);
  const ofRoom = kept.filter((mutant) => mutant.room === room);
  for (const mutant of ofRoom) perLine.delete(lineOf(mutant));
  added.push(...[...perLine.values()].slice(0, Math.max(0, count - ofRoom.length)));
}
await write([...kept, ...added.map((mutant) => ({ ...mutant, caughtBy: '?' }))]);
