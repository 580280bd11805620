/** The list of mutants, with what has caught each: one line a mutant, in `mutants.tsv`. */

const FILE = new URL('mutants.tsv', import.meta.url).pathname;
const COLUMNS = ['room', 'file', 'before', 'after', 'caughtBy'] as const;

/** A change of one line. An empty `after` removes it. */
export interface Mutant {
  readonly room: string;
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

/** `caughtBy`: the first test file that failed, `nothing`, or `?` as long as it is not known. */
export type Tried = Mutant & { readonly caughtBy: string };

/** How many mutants each room gets, where they are, and which tests are the first to catch them. */
export const ROOMS: Record<string, { count: number; sources: string[]; tests: string[] }> = {
  http: { count: 70, sources: ['src/gateway/http/**/*.ts'], tests: ['unit', 'integration/relay', 'faults'] },
  refresh: {
    count: 70,
    sources: ['src/gateway/refresh/*.ts'],
    tests: ['faults/refresh-model', 'integration/session', 'unit'],
  },
  session: { count: 40, sources: ['src/gateway/session/*.ts'], tests: ['integration/session', 'unit'] },
  routes: {
    count: 30,
    sources: ['src/gateway/routes/*.ts'],
    tests: ['integration/relay', 'integration/session'],
  },
  upstream: {
    count: 40,
    sources: ['src/gateway/upstream/*.ts'],
    tests: ['unit', 'integration/relay', 'integration/session', 'faults'],
  },
  settings: { count: 30, sources: ['src/gateway/settings/*.ts'], tests: ['unit', 'integration/process'] },
  telemetry: { count: 20, sources: ['src/gateway/telemetry/*.ts'], tests: ['integration/telemetry', 'unit'] },
  client: { count: 50, sources: ['src/client/*.ts'], tests: ['page/client'] },
  /** What fixes have added, taken away again: chosen by hand. */
  fixes: {
    count: 0,
    sources: [],
    tests: ['integration/session', 'unit', 'integration/relay', 'faults', 'page'],
  },
  deploy: {
    count: 30,
    sources: ['deploy/**/*.{conf,cfg,service,sh}', 'deploy/monitoring/*.yml'],
    tests: ['deploy'],
  },
};

export async function read(): Promise<Tried[]> {
  const [, ...lines] = (await Bun.file(FILE).text()).trimEnd().split('\n');
  return lines.map((line) => {
    const [room = '', file = '', before = '', after = '', caughtBy = ''] = line.split('\t');
    return { room, file, before, after, caughtBy };
  });
}

export async function write(tried: Tried[]): Promise<void> {
  const lines = tried.map((each) => COLUMNS.map((column) => each[column]).join('\t'));
  await Bun.write(FILE, `${[COLUMNS.join('\t'), ...lines].join('\n')}\n`);
}
