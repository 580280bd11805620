/** Which mutants a change has to be caught with. */

import { $ } from 'bun';
import { isStale, type Mutant, read } from './list.ts';
import { mutantsOf, onePerLine, shuffled } from './operators.ts';

/**
 * One of each line of the gateway that is new since the base, and those of the list whose test file has lost lines.
 *
 * @param base a commit or a branch; what is not committed does not count
 */
export async function mutantsOfChange(base: string): Promise<Mutant[]> {
  const touched = (await touchedLines(base)).flatMap(([file, line]) => [...mutantsOf('changed', file, line)]);
  const cut = await cutTests(base);
  const listed = (await read()).filter(({ room, caughtBy }) => room !== 'deploy' && cut.has(caughtBy));
  const stale = await Promise.all(listed.map(isStale));
  return shuffled([...onePerLine(touched).values(), ...listed.filter((_, index) => !stale[index])]);
}

async function touchedLines(base: string): Promise<[file: string, line: string][]> {
  const diff = await $`git diff --unified=0 ${base} HEAD -- src/gateway`.text();
  let file = '';
  const found: [string, string][] = [];
  for (const line of diff.split('\n')) {
    if (line.startsWith('+++ ')) file = line.slice('+++ b/'.length);
    else if (line.startsWith('+')) found.push([file, line.slice(1)]);
  }
  return found;
}

/** The test files that have lost lines, or are gone. */
async function cutTests(base: string): Promise<ReadonlySet<string>> {
  const counts = await $`git diff --numstat --no-renames ${base} HEAD -- tests`.text();
  const rows = counts
    .trim()
    .split('\n')
    .map((line) => line.split('\t'));
  return new Set(rows.filter(([, lost]) => Number(lost) > 0).map(([, , file = '']) => file));
}
