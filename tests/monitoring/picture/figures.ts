/** Figures as people read them, in Grafana's units. */

const LARGE = ['', 'k', 'M', 'G'];
const DIGITS = new Intl.NumberFormat('en', { maximumSignificantDigits: 3, useGrouping: false });

/** With the unit's name, such as `12.5 MB/s`. */
export function figure(value: number, unit: string): string {
  if (unit === 'percentunit') return `${DIGITS.format(value * 100)} %`;
  if (unit === 's') return seconds(value);
  if (unit === 'decbytes') return `${scaled(value)}B`;
  if (unit === 'Bps') return `${scaled(value)}B/s`;
  return unit === 'reqps' ? `${scaled(value).trim()}/s` : scaled(value).trim();
}

function seconds(value: number): string {
  if (value === 0 || value >= 1) return `${DIGITS.format(value)} s`;
  return value >= 0.001 ? `${DIGITS.format(value * 1000)} ms` : `${DIGITS.format(value * 1e6)} µs`;
}

function scaled(value: number): string {
  let rest = value;
  let step = 0;
  for (; rest >= 1000 && step < LARGE.length - 1; step++) rest /= 1000;
  return `${DIGITS.format(rest)} ${LARGE[step]}`;
}

/** A value's place on an axis, from 0 to 1, and where its lines are. */
export interface Scale {
  readonly ticks: readonly number[];
  place(value: number): number;
}

const STEPS = [1, 2, 2.5, 5, 10];
const LINES = 4;

/** From 0 to a round number at or above the largest value. */
export function linearScale(values: readonly number[]): Scale {
  const most = Math.max(...values) || 1;
  const magnitude = 10 ** Math.floor(Math.log10(most / LINES));
  const step = magnitude * (STEPS.find((each) => each * magnitude * LINES >= most) ?? 10);
  const count = Math.ceil(most / step);
  return {
    ticks: Array.from({ length: count + 1 }, (_, index) => index * step),
    place: (value) => value / (count * step),
  };
}

/** From one power of ten to another. */
export function logScale(values: readonly number[]): Scale {
  const positive = values.filter((value) => value > 0);
  const first = Math.floor(Math.log10(Math.min(...positive)));
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...positive))));
  return {
    ticks: Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index)),
    place: (value) => Math.max(0, (Math.log10(value) - first) / (last - first)),
  };
}
