/** A whole run: starts and checks the contenders, measures the rows, then what needs processes of its own. */

import { cpus, release } from 'node:os';
import { checkResponses } from './check.ts';
import { CONTENDERS, type Contender, gatewayIn } from './contenders.ts';
import { changes, measureControls } from './controls.ts';
import { HTTP2 } from './http2.ts';
import { IN_FLIGHT } from './in-flight.ts';
import { INSTANCES } from './instances.ts';
import { type Attempt, type Entrant, measure } from './measure.ts';
import { missingOf, type Place, start } from './processes.ts';
import { ALL_ROWS, type Row } from './rows.ts';
import { SEEK } from './seek.ts';
import { STARTS } from './starts.ts';
import { STREAMS } from './streams.ts';
import { startUpstream } from './upstream.ts';
import { versions } from './versions.ts';

interface Options {
  readonly isQuick: boolean;
  readonly only: readonly string[];
  readonly rows: readonly string[];
  /** Folders of other checkouts of the gateway. */
  readonly beside: readonly string[];
  readonly folder: string;
  /** Processes that wanted a core before the run began: the system's one-minute average. */
  readonly loadBefore: number;
}

const SEPARATE_TABLES = [SEEK, STREAMS, IN_FLIGHT, INSTANCES, HTTP2, STARTS];

type Setup = 'plain' | NonNullable<Row['setup']>;

export type Results = Awaited<ReturnType<typeof run>>;

/** @throws Error for an unknown contender or row */
export async function run({ isQuick, only, rows, beside, folder, loadBefore }: Options) {
  const chosenRows = choose([...ALL_ROWS, ...SEPARATE_TABLES], rows);
  const [gateway, ...others] = CONTENDERS;
  const chosen = choose([...(gateway ? [gateway] : []), ...beside.map(gatewayIn), ...others], only);
  const contenders = chosen.filter(({ program }) => Bun.which(program));
  const leftOut = chosen
    .filter((contender) => !contenders.includes(contender))
    .map(({ title, program }) => `${title}: ${program} is not installed`);
  const problems: string[] = [];
  const attempt: Attempt = async (name, step) => {
    try {
      await step();
    } catch (error) {
      problems.push(`${name}: ${error instanceof Error ? error.message : error}`);
    }
  };
  const rounds = isQuick ? 1 : 15;
  await using upstream = await startUpstream(folder);
  const place = { folder, upstreamUrl: upstream.url };
  const places = {
    plain: place,
    log: { ...place, hasLog: true },
    tls: { ...place, upstreamUrl: upstream.tlsUrl },
  };
  const loadRows = ALL_ROWS.filter((row) => chosenRows.includes(row));

  const before = await measureControls(place);
  const measurements = await measureRows(loadRows, contenders, places, rounds, attempt);
  const separateTables = [];
  for (const table of SEPARATE_TABLES.filter((each) => chosenRows.includes(each))) {
    const missing = missingOf(table.needs);
    if (missing.length) leftOut.push(`${table.title}: needs ${missing.join(', ')}`);
    if (missing.length) continue;
    console.log(`measuring: ${table.title}`);
    const lines: string[][] = [];
    for (const contender of contenders.filter(({ id }) => table.contenders.includes(id))) {
      await attempt(`${table.title}, ${contender.title}`, async () => {
        lines.push(...(await table.lines(contender, place, isQuick)));
      });
    }
    separateTables.push({ title: table.title, columns: table.columns, lines });
  }
  const after = await measureControls(place);
  return {
    commit: commit(),
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores, Linux ${release()}`,
    loadBefore,
    before,
    after,
    changes: changes(before, after),
    isQuick,
    rounds,
    versions: versions(),
    leftOut,
    notChecked: contenders.flatMap(({ title, leavesOut }) =>
      leavesOut ? [`${title}: ${leavesOut.join(', ')}`] : [],
    ),
    problems,
    measurements,
    separateTables,
  };
}

function choose<Item extends { id: string }>(items: readonly Item[], ids: readonly string[]): Item[] {
  const known = items.map(({ id }) => id);
  const unknown = ids.filter((id) => !known.includes(id));
  if (unknown.length) throw new Error(`${unknown.join(', ')} is not among ${known.join(', ')}`);
  return items.filter(({ id }) => !ids.length || ids.includes(id));
}

/** Says so when files are not as in the commit. */
function commit(): string {
  const git = Bun.spawnSync(['git', 'describe', '--always', '--dirty', '--exclude=*'], {
    cwd: import.meta.dir,
  });
  return git.stdout.toString().trim() || 'unknown';
}

/** All contenders run at the same time; one with a wrong response is not measured. */
async function measureRows(
  rows: readonly Row[],
  contenders: readonly Contender[],
  places: Readonly<Record<Setup, Place>>,
  rounds: number,
  attempt: Attempt,
) {
  await using stack = new AsyncDisposableStack();
  const entrants: Entrant[] = [];
  for (const contender of contenders) {
    const own = rows.filter((row) => row.contenders?.includes(contender.id) ?? true);
    for (const [setup, rowsOfSetup] of Map.groupBy(own, ({ setup }): Setup => setup ?? 'plain')) {
      await attempt(contender.title, async () => {
        const running = stack.use(await start(contender, places[setup]));
        for (const row of rowsOfSetup) {
          await checkResponses(row, running, places.plain.upstreamUrl, contender.leavesOut);
        }
        entrants.push(...rowsOfSetup.map((row) => ({ row, contender, running })));
      });
    }
  }
  return await measure(entrants, rounds, attempt);
}
