/** A panel with lines, as SVG: axes, a line for each series, and what they are called. */

import type { Chart } from '../dashboard.ts';
import { figure, linearScale, logScale } from './figures.ts';

export interface Series {
  readonly name: string;
  /** Times in seconds since 1970, and figures. */
  readonly points: readonly (readonly [number, number])[];
}

export interface Range {
  readonly start: number;
  readonly end: number;
}

export interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export const COLOURS: Readonly<Record<string, string>> = {
  green: '#2f9e5b',
  blue: '#3274d9',
  orange: '#e08b1d',
  red: '#d63a3a',
  purple: '#8f5cc4',
};
const PALETTE = [
  '#3274d9',
  '#2f9e5b',
  '#e08b1d',
  '#8f5cc4',
  '#14919b',
  '#c2417a',
  '#8a6d3b',
  '#7a8899',
  '#a3b300',
];

const LETTER = 5.9;
const LEGEND_LINE = 15;
const AXIS = 54;
const TIME_MARKS = 4;

export function drawChart(chart: Chart, series: readonly Series[], area: Area, range: Range): string {
  const { unit, custom } = chart.fieldConfig.defaults;
  const legend = legendOf(series, area.width);
  const plot = {
    x: area.x + AXIS,
    y: area.y + 6,
    width: area.width - AXIS - 6,
    height: area.height - 24 - legend.lines * LEGEND_LINE,
  };
  const values = series.flatMap(({ points }) => points.map(([, value]) => value));
  const scale = custom?.scaleDistribution ? logScale(values) : linearScale(values);
  const x = (time: number) => plot.x + ((time - range.start) / (range.end - range.start)) * plot.width;
  const y = (value: number) => plot.y + plot.height * (1 - scale.place(value));
  const colours = coloursOf(chart, series);
  return [
    ...scale.ticks.map(
      (tick) =>
        `<path class="grid" d="M${plot.x} ${round(y(tick))}h${plot.width}"/>` +
        text(plot.x - 6, y(tick) + 4, figure(tick, unit), 'minor end'),
    ),
    ...timesOf(range).map((time) => text(x(time), plot.y + plot.height + 14, clock(time), 'minor middle')),
    ...series.map(
      ({ points }, index) =>
        `<path class="line" stroke="${colours[index]}" d="${lineOf(points.map(([time, value]) => [x(time), y(value)]))}"/>`,
    ),
    ...legend.places.map(({ name, left, line }, index) => {
      const top = plot.y + plot.height + 29 + line * LEGEND_LINE;
      return (
        `<path stroke="${colours[index]}" stroke-width="3" d="M${round(area.x + left)} ${round(top - 4)}h10"/>` +
        text(area.x + left + 14, top, name, 'minor')
      );
    }),
  ].join('\n');
}

/** Broken where Prometheus has no figure: where the next one is further away than the nearest two are. */
function lineOf(points: readonly (readonly [number, number])[]): string {
  const gaps = points.map(([x], index) => x - (points[index - 1]?.[0] ?? Number.NEGATIVE_INFINITY));
  const widest = 1.5 * Math.min(...gaps);
  return points
    .map(([x, y], index) => {
      const begins = index === 0 || (gaps[index] ?? 0) > widest;
      return `${begins ? 'M' : 'L'}${round(x)} ${round(y)}`;
    })
    .join('');
}

function coloursOf({ fieldConfig }: Chart, series: readonly Series[]): (string | undefined)[] {
  return series.map(({ name }, index) => {
    const override = fieldConfig.overrides.find(({ matcher }) => matcher.options === name);
    const fixed = override && COLOURS[override.properties[0].value.fixedColor];
    return fixed ?? PALETTE[index % PALETTE.length];
  });
}

function legendOf(series: readonly Series[], width: number) {
  let left = 4;
  let line = 0;
  const places = series.map(({ name }) => {
    const wide = 26 + name.length * LETTER;
    if (left + wide > width && left > 4) {
      left = 4;
      line++;
    }
    const place = { name, left, line };
    left += wide;
    return place;
  });
  return { places, lines: line + 1 };
}

function timesOf({ start, end }: Range): number[] {
  return Array.from(
    { length: TIME_MARKS },
    (_, index) => start + ((index + 0.5) * (end - start)) / TIME_MARKS,
  );
}

function clock(time: number): string {
  return new Date(time * 1000).toISOString().slice(11, 19);
}

export function text(x: number, y: number, content: string, names: string): string {
  return `<text class="${names}" x="${round(x)}" y="${round(y)}">${Bun.escapeHTML(content)}</text>`;
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
