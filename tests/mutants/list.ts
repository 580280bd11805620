/** The list of mutants, with what has caught each: one line a mutant, in `mutants.tsv`. */

const FILE = new URL('mutants.tsv', import.meta.url).pathname;
const COLUMNS = ['room', 'file', 'before', 'after', 'caughtBy'] as const;

/**
 * A change of one line, in a part of the project. An empty `after` removes it. `caughtBy`: the test file of the whole
 * suite that failed first, `nothing`, or `?` as long as it is not known.
 */
export type Mutant = Readonly<Record<(typeof COLUMNS)[number], string>>;

export async function read(): Promise<Mutant[]> {
  const [, ...lines] = (await Bun.file(FILE).text()).trimEnd().split('\n');
  return lines.map((line) => {
    const [room = '', file = '', before = '', after = '', caughtBy = ''] = line.split('\t');
    return { room, file, before, after, caughtBy };
  });
}

export async function write(mutants: readonly Mutant[]): Promise<void> {
  const lines = mutants.map((each) => COLUMNS.map((column) => each[column]).join('\t'));
  await Bun.write(FILE, `${[COLUMNS.join('\t'), ...lines].join('\n')}\n`);
}
