/** A whole run: starts and checks the contenders, measures the rows, then what needs processes of its own. */

import { cpus, loadavg, release } from 'node:os';
import { checkResponses } from './check.ts';
import { CONTENDERS, type Contender, gatewayIn } from './contenders.ts';
import { IN_FLIGHT } from './in-flight.ts';
import { INSTANCES } from './instances.ts';
import { type Attempt, measure } from './measure.ts';
import { missingOf, type Place, type Running, start } from './processes.ts';
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
}

const SEPARATE_TABLES = [SEEK, STREAMS, IN_FLIGHT, INSTANCES, STARTS];

export type Results = Awaited<ReturnType<typeof run>>;

/** @throws Error for an unknown contender or row */
export async function run({ isQuick, only, rows, beside, folder }: Options) {
  const [loadBefore = 0] = loadavg();
  const chosenRows = choose([...ALL_ROWS, ...SEPARATE_TABLES], rows);
  const chosen = choose([...beside.map(gatewayIn), ...CONTENDERS], only);
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
  const rounds = isQuick ? 1 : 5;
  await using upstream = await startUpstream(folder);
  const place = { folder, upstreamHost: new URL(upstream.url).host };

  const measurements = [];
  for (const hasLog of [false, true]) {
    const loadRows = ALL_ROWS.filter((row) => chosenRows.includes(row) && (row.hasLog ?? false) === hasLog);
    measurements.push(...(await measureRows(loadRows, contenders, { ...place, hasLog }, rounds, attempt)));
  }
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
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores, Linux ${release()}`,
    /** Processes that wanted a core before the run began: the system's one-minute average. */
    loadBefore,
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

/** All contenders run at the same time; one with a wrong response is not measured. */
async function measureRows(
  rows: readonly Row[],
  contenders: readonly Contender[],
  place: Place,
  rounds: number,
  attempt: Attempt,
) {
  await using stack = new AsyncDisposableStack();
  const running = new Map<Contender, Running>();
  for (const contender of rows.length ? contenders : []) {
    await attempt(contender.title, async () => {
      const started = stack.use(await start(contender, place));
      for (const row of rows.filter((each) => each.contenders?.includes(contender.id) ?? true)) {
        await checkResponses(row, started, `http://${place.upstreamHost}`, contender.leavesOut);
      }
      running.set(contender, started);
    });
  }
  const measurements = [];
  for (const row of rows) {
    console.log(`measuring: ${row.title}`);
    measurements.push(...(await measure(row, running, rounds, attempt)));
  }
  return measurements;
}
