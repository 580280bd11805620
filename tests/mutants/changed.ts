/** Which mutants a change has to be caught with. */

import { $, hash } from 'bun';

/** A change of one line. An empty `after` removes it. */
export type Mutant = Readonly<Record<'file' | 'before' | 'after', string>>;

/** Each becomes the other. */
const OPPOSITES: [one: string, other: string][] = [
  [' === ', ' !== '],
  [' && ', ' || '],
  [' < ', ' <= '],
  [' > ', ' >= '],
  [' + ', ' - '],
  ['.min(', '.max('],
];
/** What a mutant does to a line of TypeScript. */
const CHANGES: [from: RegExp | string, to: string][] = [
  ...OPPOSITES,
  ...OPPOSITES.map(([one, other]): [string, string] => [other, one]),
  [' ?? ', ' && '],
  [' * ', ' / '],
  [/\btrue\b/, 'false'],
  [/\bfalse\b/, 'true'],
  [/(?<=[ (])!(?=[\w#(])/, ''],
  [/(?<![\w.'-])(\d[\d_]*)(?![\w.'-])/, '($1 * 2 + 1)'],
  [/\bif \((.*)\)( \{)?$/, 'if (false)$2'],
  [/^(\s+)if \((.*)\) (return|continue|throw|break)\b/, '$1if (true) $3'],
  [/^(\s+)(?:await )?[\w.#?]+\(.*\);$/, '$1;'],
  [/^(\s+)[\w.#[\]]+ (?:[-+?&|]{0,2}=) .*;$/, '$1;'],
  [/\breturn [^;]+;$/, 'return undefined;'],
  [/'([a-z][a-z-]{2,})'/, "'$1-x'"],
];
/** Texts alone. */
const NO_LOGIC = 'src/gateway/http/messages.ts';
const NO_CODE =
  /^\s*(?:\*|\/\*|\/\/|import |export (?:type|interface)|type |interface |readonly |[}\])]|#(?:[ !]|$)|$)/;

/**
 * One of each line of the gateway that is new since the base, in an order that is shuffled.
 *
 * @param base a commit or a branch; what is not committed does not count
 */
export async function mutantsOfChange(base: string): Promise<Mutant[]> {
  const touched = shuffled((await touchedLines(base)).flatMap(mutantsOf));
  const onePerLine = new Map(touched.map((mutant) => [`${mutant.file} ${mutant.before}`, mutant]));
  return shuffled([...onePerLine.values()]);
}

async function touchedLines(base: string): Promise<[file: string, line: string][]> {
  const diff = await $`git diff --unified=0 ${base} HEAD -- src/gateway ${':!*.md'}`.text();
  return diff.split(/^\+\+\+ b\//m).flatMap((part) => {
    const [file = '', ...lines] = part.split('\n');
    const added = lines.filter((line) => line.startsWith('+'));
    return added.map((line): [string, string] => [file, line.slice(1)]);
  });
}

/** Every mutant of a line of code; a line of the OpenAPI document has one, which removes it. */
function mutantsOf([file, before]: [file: string, line: string]): Mutant[] {
  if (NO_CODE.test(before) || file === NO_LOGIC) return [];
  const changed = file.endsWith('.ts') ? CHANGES.map(([from, to]) => before.replace(from, to)) : [''];
  return changed.filter((after) => after !== before).map((after) => ({ file, before, after }));
}

/** By their hash, so that they stay where they are when others come or go. */
function shuffled(mutants: readonly Mutant[]): Mutant[] {
  return mutants.toSorted((a, b) => Number(hash(JSON.stringify(a)) - hash(JSON.stringify(b))));
}
