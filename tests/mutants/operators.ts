/** How a line of code is broken. */

import { hash } from 'bun';
import type { Mutant } from './list.ts';

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
export function* mutantsOf(room: string, file: string, before: string): Generator<Mutant> {
  if (NO_CODE.test(before) || file === NO_LOGIC) return;
  if (!file.endsWith('.ts')) yield { room, file, before, after: '' };
  else
    for (const [from, to] of CHANGES)
      if (before.replace(from, to) !== before) yield { room, file, before, after: before.replace(from, to) };
}

/** Shuffles them by their hash, so that they stay where they are when others come or go. */
export function shuffled(mutants: readonly Mutant[]): Mutant[] {
  return mutants.toSorted((a, b) => Number(hash(JSON.stringify(a)) - hash(JSON.stringify(b))));
}

/** One for each line. */
export function onePerLine(mutants: readonly Mutant[]): Map<string, Mutant> {
  return new Map(shuffled(mutants).map((mutant) => [lineOf(mutant), mutant]));
}

export function lineOf({ file, before }: Mutant): string {
  return `${file} ${before}`;
}
