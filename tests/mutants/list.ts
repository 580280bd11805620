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

type Room = readonly [count: number, sources: string, tests: string];

/** How many mutants each room gets, where they are, and which tests are the first to catch them. */
export const ROOMS: Readonly<Record<string, Room>> = {
  http: [70, 'src/gateway/{http,exchange,admission}/*.ts', 'unit integration/relay faults'],
  refresh: [70, 'src/gateway/refresh/*.ts', 'faults/refresh-model integration/session unit'],
  session: [40, 'src/gateway/session/*.ts', 'integration/session unit'],
  routes: [30, 'src/gateway/routes/*.ts', 'integration/relay integration/session'],
  upstream: [40, 'src/gateway/upstream/*.ts', 'unit integration/relay integration/session faults'],
  settings: [30, 'src/gateway/settings/*.ts', 'unit integration/process'],
  telemetry: [20, 'src/gateway/telemetry/*.ts', 'integration/telemetry unit'],
  client: [50, 'src/client/*.ts', 'page/client'],
  deploy: [30, 'deploy/**/*.{conf,cfg,service,sh,yml}', 'deploy'],
  /** What fixes have added, taken away again: chosen by hand. */
  fixes: [0, '', 'integration/session unit integration/relay faults page'],
};

export async function read(): Promise<Tried[]> {
  const [, ...lines] = (await Bun.file(FILE).text()).trimEnd().split('\n');
  return lines.map((line) => {
    const [room = '', file = '', before = '', after = '', caughtBy = ''] = line.split('\t');
    return { room, file, before, after, caughtBy };
  });
}

export async function write(tried: readonly Tried[]): Promise<void> {
  const lines = tried.map((each) => COLUMNS.map((column) => each[column]).join('\t'));
  await Bun.write(FILE, `${[COLUMNS.join('\t'), ...lines].join('\n')}\n`);
}

/** Whether the line that the mutant changes is there no more, so that it could not be tried. */
export async function isStale({ file, before }: Mutant): Promise<boolean> {
  const source = Bun.file(file);
  return !((await source.exists()) && (await source.text()).split('\n').includes(before));
}
