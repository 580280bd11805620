/** Lists one-line mutants for `mutants.ts`: those whose line is still there stay, and chosen ones take the place of the rest. */

import { Glob, hash } from 'bun';
import { isStale, type Mutant, ROOMS, read, write } from './list.ts';

/** What a mutant does to a line of TypeScript. */
const CHANGES: [from: RegExp, to: string][] = [
  [/ === /, ' !== '],
  [/ !== /, ' === '],
  [/ && /, ' || '],
  [/ \|\| /, ' && '],
  [/ \?\? /, ' && '],
  [/ <= /, ' < '],
  [/ >= /, ' > '],
  [/ < /, ' <= '],
  [/ > /, ' >= '],
  [/\btrue\b/, 'false'],
  [/\bfalse\b/, 'true'],
  [/(?<=[ (])!(?=[\w#(])/, ''],
  [/ \+ /, ' - '],
  [/ - /, ' + '],
  [/ \* /, ' / '],
  [/(?<![\w.'-])(\d[\d_]*)(?![\w.'-])/, '($1 * 2 + 1)'],
  [/\bif \((.*)\)( \{)?$/, 'if (false)$2'],
  [/^(\s+)if \((.*)\) (return|continue|throw|break)\b/, '$1if (true) $3'],
  [/^(\s+)(?:await )?[\w.#?]+\(.*\);$/, '$1;'],
  [/^(\s+)[\w.#[\]]+ (?:[-+?&|]{0,2}=) .*;$/, '$1;'],
  [/\breturn [^;]+;$/, 'return undefined;'],
  [/'([a-z][a-z-]{2,})'/, "'$1-x'"],
  [/\.min\(/, '.max('],
  [/\.max\(/, '.min('],
];
/** Texts alone. */
const NO_LOGIC = 'src/gateway/http/messages.ts';
const NO_CODE =
  /^\s*(?:\*|\/\*|\/\/|import |export (?:type|interface)|type |interface |readonly |[}\])]|#(?:[ !]|$)|$)/;

/** Every mutant of a line of code; a line of configuration has one, which removes it. */
function* mutantsOf(room: string, file: string, before: string): Generator<Mutant> {
  if (NO_CODE.test(before) || file === NO_LOGIC) return;
  if (!file.endsWith('.ts')) yield { room, file, before, after: '' };
  else
    for (const [from, to] of CHANGES)
      if (before.replace(from, to) !== before) yield { room, file, before, after: before.replace(from, to) };
}

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
  // Sorted by hash they are shuffled, but stay where they are when other lines change. Each line has one at most.
  candidates.sort((a, b) => Number(hash(JSON.stringify(a)) - hash(JSON.stringify(b))));
  const perLine = new Map(candidates.map((mutant) => [`${mutant.file} ${mutant.before}`, mutant]));
  const ofRoom = kept.filter((mutant) => mutant.room === room);
  for (const { file, before } of ofRoom) perLine.delete(`${file} ${before}`);
  added.push(...[...perLine.values()].slice(0, Math.max(0, count - ofRoom.length)));
}
await write([...kept, ...added.map((mutant) => ({ ...mutant, caughtBy: '?' }))]);
