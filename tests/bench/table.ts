/** The results as Markdown. */

import { COSTS, COUNTED } from '../load/request-costs.ts';
import type { Contender } from './contenders.ts';
import { type Measurement, pairedRatios, type Round } from './measure.ts';
import { ALL_ROWS, MODELS_ROW, type Row, SEEK_ROW } from './rows.ts';
import type { Results } from './run.ts';
import { figure, number, ratio } from './statistics.ts';

/** Small responses: of larger ones, few end within a round. */
const UNDER_LOAD = [MODELS_ROW, SEEK_ROW];

type Measurements = Results['measurements'];
type Table = Results['separateTables'][number];

export function page(results: Results): string {
  const { measurements, isQuick, rounds, before, after } = results;
  const tables = [
    ratioTable(measurements),
    costTable(measurements),
    ...UNDER_LOAD.map((row) => loadTable(measurements, row)),
    ...results.separateTables,
    COUNTS_TABLE,
  ].filter(({ lines }) => lines.length);
  const controls = [
    `nginx ${number(before.nginxMicroseconds)} and ${number(after.nginxMicroseconds)} µs`,
    `a loop ${number(before.loopMs)} and ${number(after.loopMs)} ms`,
  ];
  const sections = [
    `# ${isQuick ? 'A quick run: figures to look at, not to quote' : 'Results'}`,
    `${results.date}; commit ${results.commit}; ${results.machine}; load before the run ${results.loadBefore.toFixed(1)}; controls before and after: ${controls.join(', ')}; ${rounds} rounds, medians [lower–upper quartile].`,
    results.versions,
    ...results.leftOut.map((reason) => `- left out: ${reason}`),
    ...results.notChecked.map((what) => `- not checked: ${what}`),
    ...results.problems.map((problem) => `- failed: ${problem}`),
    ...results.changes.map((change) => `- not quiet: ${change}`),
    ...tables.map((table) => `## ${table.title}\n\n${markdown(table)}`),
  ];
  return `${sections.join('\n\n')}\n`;
}

/** What the first contender, mostly the gateway, needs as a multiple of each other in the same round. */
function ratioTable(all: Measurements): Table {
  const [subject, ...others] = contendersOf(all);
  const lines = rowsOf(all).flatMap((row) => {
    const own = measurementOf(all, row, subject);
    const cells = others.map((contender) => {
      const other = measurementOf(all, row, contender);
      return own && other ? figure(pairedRatios(own, other), ratio) : '–';
    });
    return cells.some((cell) => cell !== '–') ? [[row.title, ...cells]] : [];
  });
  const title = `CPU time of ${subject?.title} as a multiple of another's, paired by round`;
  return { title, columns: ['', ...others.map((other) => other.title)], lines };
}

/** In microseconds, of a track in milliseconds. */
function costTable(all: Measurements): Table {
  const contenders = contendersOf(all);
  const lines = rowsOf(all).map((row) => {
    const [unit, divisor] = row.trackBytes ? ['ms', 1000] : ['µs', 1];
    const cells = contenders.map((contender) => {
      const measurement = measurementOf(all, row, contender);
      if (!measurement) return '–';
      const refused = figureOf(measurement, 'refusedPercent');
      const note = refused === number(0) ? '' : ` (and ${refused} % refused)`;
      return figureOf(measurement, 'cpuMicroseconds', divisor) + note;
    });
    return [`${row.title}, ${unit}`, ...cells];
  });
  const peaks = contenders.map((contender) => peak(all.filter((each) => each.contender === contender)));
  if (lines.length) lines.push(['peak MB of all these', ...peaks]);
  return { title: 'CPU time', columns: ['CPU time of one', ...contenders.map(({ title }) => title)], lines };
}

function loadTable(all: Measurements, row: Row): Table {
  const names = ['requestsPerSecond', 'busyPercent', 'p50Ms', 'p99Ms', 'megabytesPerCpuSecond'] as const;
  const columns = ['', 'a second', '% of its core', 'p50 ms', 'p99 ms', 'MB per CPU second', 'peak MB'];
  const lines = all
    .filter((each) => each.row === row)
    .map((each) => [each.contender.title, ...names.map((name) => figureOf(each, name)), peak([each])]);
  return { title: `Under load: ${row.title}`, columns, lines };
}

/** `bun run static` compares them with those of today. */
const COUNTS_TABLE: Table = {
  title: 'Counts of one request of this gateway',
  columns: ['', ...COUNTED],
  lines: COSTS.map(([name, , , cost]) => [name, ...COUNTED.map((count) => `${cost[count]}`)]),
};

function rowsOf(all: Measurements): Row[] {
  return ALL_ROWS.filter((row) => all.some((each) => each.row === row));
}

function contendersOf(all: Measurements): Contender[] {
  return [...new Set(all.map(({ contender }) => contender))];
}

function measurementOf(all: Measurements, row: Row, contender?: Contender): Measurement | undefined {
  return all.find((each) => each.row === row && each.contender === contender);
}

function figureOf({ rounds }: Measurement, name: keyof Round, divisor = 1): string {
  return figure(rounds.map((round) => round[name] / divisor));
}

function peak(measurements: Measurements): string {
  return number(Math.max(...measurements.flatMap(({ rounds }) => rounds.map(({ peakMb }) => peakMb))));
}

export function markdown({ columns, lines }: Omit<Table, 'title'>): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const rule = columns.map((_, index) => (index === 0 ? '---' : '--:'));
  return [columns, rule, ...lines].map(line).join('\n');
}
