/** The results as Markdown. */

import type { Contender } from './contenders.ts';
import type { Measurement, Round } from './measure.ts';
import { BODY_ROWS, COMMON_ROWS, CONNECTION_ROWS, GATEWAY_ROWS, LOG_ROWS, type Row } from './rows.ts';
import type { Results } from './run.ts';
import { figure, number, summarize } from './statistics.ts';

const MAIN_ROWS: readonly Row[] = [...new Set([...COMMON_ROWS, ...LOG_ROWS])];

type Measurements = Results['measurements'];
type Table = Results['separateTables'][number];

export function page(results: Results): string {
  const { measurements: all, isQuick, date, machine, rounds, loadBefore, versions } = results;
  const tables = [
    costTable(all),
    logCostTable(all),
    timesTable(all),
    ...MAIN_ROWS.map((row) => loadTable(all, row)),
    growthTable('How cost grows with the body: CPU µs', all, BODY_ROWS),
    growthTable('How cost grows with the connections: CPU µs', all, CONNECTION_ROWS),
    ...CONNECTION_ROWS.map((row) => loadTable(all, row)),
    growthTable('What a proxy alone does not do: CPU µs', all, GATEWAY_ROWS),
    ...results.separateTables,
  ].filter(({ lines }) => lines.length);
  const sections = [
    `# ${isQuick ? 'A quick run: figures to look at, not to quote' : 'Results'}`,
    `${date}; ${machine}; medians of ${rounds} and ± half of their range; load before the run ${loadBefore.toFixed(1)}.`,
    versions,
    ...results.leftOut.map((reason) => `- left out: ${reason}`),
    ...results.notChecked.map((what) => `- not checked: ${what}`),
    ...results.problems.map((problem) => `- failed: ${problem}`),
    ...tables.map((table) => `## ${table.title}\n\n${markdown(table)}`),
  ];
  return `${sections.join('\n\n')}\n`;
}

/** A line for each contender. */
export function costTable(all: Measurements, title = 'CPU time', group = COMMON_ROWS): Table {
  const [rows, contenders] = measured(all, group);
  const titles = rows.map(({ title, trackBytes }) => `${title}, ${trackBytes ? 'ms' : 'µs'}`);
  const lines = contenders.map((contender) => {
    const own = all.filter((each) => each.contender === contender && rows.includes(each.row));
    return [contender.title, ...rows.map((row) => cost(own, row, contender)), peak(own)];
  });
  return { title, columns: ['CPU time of one', ...titles, 'peak MB'], lines };
}

export function logCostTable(all: Measurements): Table {
  return costTable(all, 'CPU time, without and with an access log', LOG_ROWS);
}

/** The median of each row as a multiple of what the bare floor needs without a log. */
function timesTable(all: Measurements): Table {
  const [rows, contenders] = measured(all, MAIN_ROWS);
  const times = (row: Row, contender: Contender) => {
    const own = all.find((each) => each.row === row && each.contender === contender);
    const floor = all.find((each) => {
      const isSameRequest = each.row.path === row.path && each.row.headers === row.headers;
      return isSameRequest && !each.row.hasLog && each.contender.id === 'bare';
    });
    return own && floor ? (medianCpu(own) / medianCpu(floor)).toFixed(2) : '–';
  };
  const lines = contenders.map((each) => [each.title, ...rows.map((row) => times(row, each))]);
  const columns = ['', ...rows.map(({ title }) => title)];
  return { title: 'CPU time, as a multiple of the bare floor without a log', columns, lines };
}

function medianCpu({ rounds }: Measurement): number {
  return summarize(rounds.map(({ cpuMicroseconds }) => cpuMicroseconds)).median;
}

/** A line for each row, because its contenders are few. */
function growthTable(title: string, all: Measurements, group: readonly Row[]): Table {
  const [rows, contenders] = measured(all, group);
  const lines = rows.map((row) => [row.title, ...contenders.map((each) => cost(all, row, each))]);
  return { title, columns: ['', ...contenders.map((contender) => contender.title)], lines };
}

function loadTable(all: Measurements, row: Row): Table {
  const names = ['requestsPerSecond', 'busyPercent', 'p50Ms', 'p99Ms', 'megabytesPerCpuSecond'] as const;
  const columns = ['', 'a second', '% of its core', 'p50 ms', 'p99 ms', 'MB per CPU second', 'peak MB'];
  const lines = all
    .filter((each) => each.row === row)
    .map((each) => [each.contender.title, ...names.map((name) => figureOf(each, name)), peak([each])]);
  return { title: `Under load: ${row.title}`, columns, lines };
}

function measured(all: Measurements, group: readonly Row[]): [Row[], Contender[]] {
  const own = all.filter(({ row }) => group.includes(row));
  const contenders = new Set(own.map(({ contender }) => contender));
  return [group.filter((each) => own.some(({ row }) => row === each)), [...contenders]];
}

/** In microseconds, of a track in milliseconds. */
function cost(all: Measurements, row: Row, contender: Contender): string {
  const measurement = all.find((each) => each.row === row && each.contender === contender);
  if (!measurement) return '–';
  const refused = figureOf(measurement, 'refusedPercent');
  const note = refused === number(0) ? '' : ` (and ${refused} % refused)`;
  return figureOf(measurement, 'cpuMicroseconds', row.trackBytes ? 1000 : 1) + note;
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
