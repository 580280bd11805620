/** The results as Markdown tables. */

import type { Contender } from './contender.ts';
import { CONTENDERS } from './contenders.ts';
import { type Measurement, measurementOf } from './measure.ts';
import type { Results } from './results.ts';
import type { Figure } from './statistics.ts';
import { COMMON_WORK, CONNECTION_WORK, GATEWAY_WORK, SIZE_WORK, type Work } from './work.ts';

const MISSING = '–';

/** What the README shows. */
export function costTable(results: Results): string {
  const works = COMMON_WORK.filter(({ id }) => results.measurements.some(({ work }) => work === id));
  if (!works.length) return '';
  const rows = contendersIn(results).map(({ id, title }) => {
    const measurements = works.map((work) => measurementOf(results.measurements, work.id, id));
    // Of these rows only: some contenders have others besides.
    const peakMb = Math.max(...measurements.map((each) => each?.peakMb ?? 0));
    return [title, ...works.map((work, index) => cost(work, measurements[index])), number(peakMb)];
  });
  return table(['CPU time of one', ...works.map((work) => `${work.title}, ${unit(work)}`), 'peak MB'], rows);
}

export function allTables(results: Results): string {
  const sections: [string, string][] = [
    ['CPU time', costTable(results)],
    ...COMMON_WORK.map(({ id, title }): [string, string] => [`Under load: ${title}`, loadTable(results, id)]),
    ['How cost grows with the body: CPU µs', growthTable(results, SIZE_WORK)],
    ['How cost grows with the connections: CPU µs', growthTable(results, CONNECTION_WORK)],
    ...CONNECTION_WORK.map(({ id, title }): [string, string] => [
      `Under load: ${title}`,
      loadTable(results, id),
    ]),
    ['What a proxy alone does not do: CPU µs', growthTable(results, GATEWAY_WORK)],
    ['Held generations', heldTable(results)],
    ['Start', startTable(results)],
  ];
  return [
    header(results),
    ...sections.filter(([, body]) => body).map(([title, body]) => `## ${title}\n\n${body}`),
  ]
    .join('\n\n')
    .concat('\n');
}

function header({ date, machine, loadBefore, rounds, versions, leftOut, problems, quick }: Results): string {
  const lines = [
    `# ${quick ? 'A quick run: figures to look at, not to quote' : 'Results'}`,
    '',
    `${date}; ${machine}; medians of ${rounds} and ± half of their range; load before the run ${loadBefore.toFixed(1)}.`,
    '',
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
  ];
  if (leftOut.length) lines.push('', ...leftOut.map((line) => `- left out: ${line}`));
  if (problems.length) lines.push('', ...problems.map((line) => `- failed: ${line}`));
  return lines.join('\n');
}

function loadTable(results: Results, work: string): string {
  const rows = contendersIn(results).flatMap(({ id, title }) => {
    const each = measurementOf(results.measurements, work, id);
    if (!each) return [];
    return [
      [
        title,
        figure(each.requestsPerSecond),
        figure(scaled(each.busy, 100)),
        figure(each.p50Ms),
        figure(each.p99Ms),
        figure(each.megabytesPerCpuSecond),
        number(each.peakMb),
      ],
    ];
  });
  return table(['', 'a second', '% of its core', 'p50 ms', 'p99 ms', 'MB per CPU second', 'peak MB'], rows);
}

function growthTable(results: Results, works: readonly Work[]): string {
  const contenders = contendersIn(results).filter(({ id }) =>
    works.some((work) => measurementOf(results.measurements, work.id, id)),
  );
  const rows = works
    .filter((work) => contenders.some(({ id }) => measurementOf(results.measurements, work.id, id)))
    .map((work) => [
      work.title,
      ...contenders.map(({ id }) => cost(work, measurementOf(results.measurements, work.id, id))),
    ]);
  return table(['', ...contenders.map(({ title }) => title)], rows);
}

function heldTable({ held }: Results): string {
  const rows = held.map((each) => [
    titleOf(each.contender),
    `${each.generations}`,
    number(each.kilobytesEach),
    `${number(each.p50MsBefore)} / ${number(each.p99MsBefore)}`,
    `${number(each.p50MsHeld)} / ${number(each.p99MsHeld)}`,
  ]);
  return table(['', 'held', 'KB each', 'session check before, p50 / p99 ms', 'meanwhile'], rows);
}

function startTable({ starts }: Results): string {
  const rows = starts.map((each) => [
    titleOf(each.contender),
    figure(each.firstAnswerMs),
    figure(each.idleMb),
  ]);
  return table(['', 'first answer after ms', 'idle MB'], rows);
}

function contendersIn({ measurements }: Results): Contender[] {
  return CONTENDERS.filter(({ id }) => measurements.some(({ contender }) => contender === id));
}

function titleOf(id: string): string {
  return CONTENDERS.find((contender) => contender.id === id)?.title ?? id;
}

/** In microseconds, of a track in milliseconds. */
function cost(work: Work, measurement: Measurement | undefined): string {
  if (!measurement) return MISSING;
  return figure(scaled(measurement.cpuMicroseconds, work.countedByBytes ? 1e-3 : 1));
}

function unit({ countedByBytes }: Work): string {
  return countedByBytes ? 'ms' : 'µs';
}

function scaled({ median, least, most }: Figure, by: number): Figure {
  return { median: median * by, least: least * by, most: most * by };
}

function figure({ median, least, most }: Figure): string {
  return least === most ? number(median) : `${number(median)} ± ${number((most - least) / 2)}`;
}

function number(value: number): string {
  return value.toFixed(Math.abs(value) < 9.95 ? 1 : 0);
}

/** Empty without rows. */
function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  if (!rows.length) return '';
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const rule = columns.map((_, index) => (index === 0 ? '---' : '--:'));
  return [line(columns), line(rule), ...rows.map(line)].join('\n');
}
