/** What was measured over time, drawn as lines of text. */

import { percentile } from './outcome.ts';

export interface Status {
  readonly pid: number;
  readonly memoryMb: number;
  readonly files: number;
  readonly sockets: number;
}

export interface Sample {
  /** Undefined while an instance does not run. */
  readonly a: Status | undefined;
  readonly b: Status | undefined;
  /** Of the session checks since the sample before; NaN without any. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly checks: number;
}

type Value = number | undefined;

const WIDTH = 72;
const STEPS = [...'▁▂▃▄▅▆▇█'];

export class Timeline {
  readonly samples: Sample[] = [];
  readonly #marks: { readonly at: number; readonly letter: string }[] = [];

  add(sample: Sample): void {
    this.samples.push(sample);
  }

  /** Marks an event, by a letter above the time at which it began. */
  mark(letter: string): void {
    this.#marks.push({ at: this.samples.length, letter });
  }

  /** The medians of a value in the first and in the last third. */
  thirds(read: (sample: Sample) => number): [first: number, last: number] {
    const third = Math.floor(this.samples.length / 3);
    return [median(this.samples.slice(0, third).map(read)), median(this.samples.slice(-third).map(read))];
  }

  /** A line for each value, from 0 to its maximum; time goes from left to right. */
  plot(): string {
    const events = Array.from({ length: WIDTH }, () => ' ');
    for (const { at, letter } of this.#marks) {
      events[Math.min(WIDTH - 1, Math.floor((at / this.samples.length) * WIDTH))] = letter;
    }
    const values: [name: string, read: (sample: Sample) => Value][] = [
      ['memory of a, MB', ({ a }) => a?.memoryMb],
      ['memory of b, MB', ({ b }) => b?.memoryMb],
      ['files of a', ({ a }) => a?.files],
      ['files of b', ({ b }) => b?.files],
      ['sockets of a', ({ a }) => a?.sockets],
      ['sockets of b', ({ b }) => b?.sockets],
      ['session check, p50 ms', ({ p50Ms }) => p50Ms],
      ['session check, p99 ms', ({ p99Ms }) => p99Ms],
      ['checks', ({ checks }) => checks],
    ];
    return [
      `${' '.repeat(23)}${events.join('')}`,
      ...values.map(([name, read]) => line(name, this.samples.map(read))),
      'R: Redis restarts, U: the upstream restarts, a, b: the instance is replaced. Each line begins at 0.',
    ].join('\n');
  }
}

/** The most that a value has grown while one process ran, between the second and the last quarter of its samples. */
export function growth(samples: readonly Sample[], read: (status: Status) => number): number {
  const byProcess = Map.groupBy(
    samples.flatMap(({ a, b }) => [a, b]).filter((status) => status !== undefined),
    ({ pid }) => pid,
  );
  const grown = [...byProcess.values()].map((statuses) => {
    const quarter = Math.floor(statuses.length / 4);
    const values = statuses.map(read);
    return median(values.slice(-quarter)) - median(values.slice(quarter, 2 * quarter));
  });
  return Math.round(Math.max(...grown.filter((each) => !Number.isNaN(each))) * 10) / 10;
}

function line(name: string, values: readonly Value[]): string {
  const known = values.filter(isKnown);
  const most = Math.max(...known);
  const columns = Array.from({ length: WIDTH }, (_, column) => {
    const [from, to] = [column, column + 1].map((edge) => Math.floor((edge / WIDTH) * values.length));
    const here = values.slice(from, Math.max(to ?? 0, (from ?? 0) + 1)).filter(isKnown);
    if (!here.length) return ' ';
    return STEPS[Math.min(STEPS.length - 1, Math.floor((median(here) / most) * STEPS.length))];
  });
  return `${name.padEnd(22)} ${columns.join('')} ${Math.min(...known)} to ${most}, median ${median(known)}`;
}

function isKnown(value: Value): value is number {
  return value !== undefined && !Number.isNaN(value);
}

function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}
