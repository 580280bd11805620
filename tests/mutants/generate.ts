/** Chooses one-line mutants, spread evenly over the files of each room, and lists them for `mutants.ts`. Those chosen by hand stay. */

import { Glob, hash } from 'bun';
import { type Mutant, ROOMS, read, write } from './list.ts';

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

const chosen: Mutant[] = [];
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
  chosen.push(...[...perLine.values()].slice(0, count));
}
const byHand = (await read()).filter(({ room }) => ROOMS[room]?.[0] === 0);
await write([...chosen.map((mutant) => ({ ...mutant, caughtBy: '?' })), ...byHand]);
