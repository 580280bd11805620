/** Chooses one-line mutants, spread evenly over the files of each room, and lists them for `mutants.ts`. Those chosen by hand stay. */

import { Glob } from 'bun';
import { type Mutant, ROOMS, read, write } from './list.ts';

const SEED = 26;

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

/** A sequence of numbers below 1 that is the same each time (mulberry32). */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    yield ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

/** Every mutant of a line of code; a line of configuration has one, which removes it. */
function* mutantsOf(room: string, file: string, before: string): Generator<Mutant> {
  if (NO_CODE.test(before) || file === NO_LOGIC) return;
  if (!file.endsWith('.ts')) yield { room, file, before, after: '' };
  else
    for (const [from, to] of CHANGES)
      if (before.replace(from, to) !== before) yield { room, file, before, after: before.replace(from, to) };
}

const random = numbers(SEED);
const chosen: Mutant[] = [];
for (const [room, { count, sources }] of Object.entries(ROOMS)) {
  const files = (await Promise.all(sources.map((glob) => Array.fromAsync(new Glob(glob).scan()))))
    .flat()
    .sort();
  const candidates: Mutant[] = [];
  for (const file of files) {
    const lines = (await Bun.file(file).text()).split('\n');
    // A line that stands there twice could not be found again.
    const unique = lines.filter((line) => lines.indexOf(line) === lines.lastIndexOf(line));
    candidates.push(...unique.flatMap((line) => [...mutantsOf(room, file, line)]));
  }
  const lines = new Set<string>();
  while (lines.size < count) {
    const candidate = candidates[Math.floor(random.next().value * candidates.length)];
    const line = `${candidate?.file} ${candidate?.before}`;
    if (!candidate || lines.has(line)) continue;
    lines.add(line);
    chosen.push(candidate);
  }
}
const byHand = (await read()).filter(({ room }) => ROOMS[room]?.count === 0);
await write([...chosen.map((mutant) => ({ ...mutant, caughtBy: '?' })), ...byHand]);
