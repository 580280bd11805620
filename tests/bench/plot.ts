/** The cost as a picture: a bar for each contender, and lines for how it grows with the body. */

import { CONTENDERS } from './contenders.ts';
import { type Measurement, measurementOf } from './measure.ts';
import type { Results } from './results.ts';
import { SIZE_WORK } from './work.ts';

const WIDTH = 760;
const LABELS = 290;
const BAR = 16;
const ROW = 26;
const BARS_OF = 'models';

/** Colours that are told apart on white and on black; the text follows the reader's scheme. */
const STYLE = `
text { font: 13px system-ui, sans-serif; fill: #333 }
.title { font-weight: 600; font-size: 14px }
.minor { fill: #6b6b6b; font-size: 11px }
.bar, .line-1, .dot-1 { --colour: #7a8899 } .own { --colour: #d9662b } .line-0, .dot-0 { --colour: #d9662b } .line-2, .dot-2 { --colour: #2a9d74 }
.bar, .own, circle { fill: var(--colour) } polyline { fill: none; stroke: var(--colour); stroke-width: 2 }
.whisker, .axis { stroke: #888; stroke-width: 1 } .grid { stroke: #888; stroke-opacity: .25 }
@media (prefers-color-scheme: dark) { text { fill: #e6e6e6 } .minor { fill: #a8a8a8 } }`;

export function costPlot(results: Results): string {
  const bars = barsOf(results);
  const lines = linesOf(results, bars.height + 30);
  const height = bars.height + 30 + lines.height;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="CPU time of a request, by contender and by size of the body">`,
    `<style>${STYLE}</style>`,
    ...bars.elements,
    ...lines.elements,
    '</svg>\n',
  ].join('\n');
}

interface Panel {
  readonly height: number;
  readonly elements: readonly string[];
}

function barsOf({ measurements }: Results): Panel {
  const entries = CONTENDERS.flatMap(({ id, title }) => {
    const measurement = measurementOf(measurements, BARS_OF, id);
    return measurement ? [{ id, title, cost: measurement.cpuMicroseconds }] : [];
  });
  const most = Math.max(1, ...entries.map(({ cost }) => cost.most));
  const x = (microseconds: number) => LABELS + (microseconds / most) * (WIDTH - LABELS - 70);
  const elements = entries.flatMap(({ id, title, cost }, index) => {
    const y = 34 + index * ROW;
    const middle = y + BAR / 2;
    return [
      text(LABELS - 8, middle + 4, title.replaceAll('`', ''), 'end'),
      `<rect class="${id === 'gateway' ? 'own' : 'bar'}" x="${LABELS}" y="${y}" width="${round(x(cost.median) - LABELS)}" height="${BAR}" rx="2"/>`,
      `<line class="whisker" x1="${round(x(cost.least))}" x2="${round(x(cost.most))}" y1="${middle}" y2="${middle}"/>`,
      text(round(x(cost.most) + 6), middle + 4, `${Math.round(cost.median)} µs`),
    ];
  });
  return {
    height: 34 + entries.length * ROW,
    elements: [text(0, 16, 'CPU time of one request for the models (1.8 KB)', 'start', 'title'), ...elements],
  };
}

const PLOT_HEIGHT = 220;
const LEFT = 60;
const LABEL_HEIGHT = 15;
const RIGHT = WIDTH - 190;

function linesOf({ measurements }: Results, top: number): Panel {
  const series = CONTENDERS.map(({ id, title }) => ({
    title,
    points: SIZE_WORK.flatMap((work, index) => {
      const measurement = measurementOf(measurements, work.id, id);
      return measurement ? [{ index, cost: costOf(measurement) }] : [];
    }),
  })).filter(({ points }) => points.length > 1);
  if (!series.length) return { height: 0, elements: [] };
  const costs = series.flatMap(({ points }) => points.map(({ cost }) => cost));
  const [low, high] = [Math.log10(Math.min(...costs)), Math.log10(Math.max(...costs))];
  const bottom = top + 30 + PLOT_HEIGHT;
  const x = (index: number) => round(LEFT + (index / (SIZE_WORK.length - 1)) * (RIGHT - LEFT));
  const y = (cost: number) => round(bottom - ((Math.log10(cost) - low) / (high - low || 1)) * PLOT_HEIGHT);
  const labels = apart(series.map(({ points }) => y(points.at(-1)?.cost ?? 1)));
  return {
    height: 30 + PLOT_HEIGHT + 30,
    elements: [
      text(
        0,
        top + 16,
        'How it grows with the body: CPU µs of one proxied request, logarithmic',
        'start',
        'title',
      ),
      ...gridOf(low, high).flatMap((cost) => [
        `<line class="grid" x1="${LEFT}" x2="${RIGHT}" y1="${y(cost)}" y2="${y(cost)}"/>`,
        text(LEFT - 8, y(cost) + 4, `${cost}`, 'end', 'minor'),
      ]),
      `<line class="axis" x1="${LEFT}" x2="${RIGHT}" y1="${bottom}" y2="${bottom}"/>`,
      ...SIZE_WORK.map(({ title }, index) =>
        text(x(index), bottom + 18, title.replace('proxied, ', ''), 'middle', 'minor'),
      ),
      ...series.flatMap(({ title, points }, number) => {
        const last = points.at(-1);
        return [
          `<polyline class="line-${number}" points="${points.map((point) => `${x(point.index)},${y(point.cost)}`).join(' ')}"/>`,
          ...points.map(
            (point) => `<circle class="dot-${number}" cx="${x(point.index)}" cy="${y(point.cost)}" r="3"/>`,
          ),
          text(x(last?.index ?? 0) + 10, (labels[number] ?? 0) + 4, shortOf(title)),
        ];
      }),
    ],
  };
}

/** Heights of labels, moved down where they would cover one another. */
function apart(heights: readonly number[]): number[] {
  const moved = [...heights];
  let free = 0;
  for (const index of [...heights.keys()].sort((one, other) => (heights[one] ?? 0) - (heights[other] ?? 0))) {
    const height = Math.max(heights[index] ?? 0, free);
    moved[index] = height;
    free = height + LABEL_HEIGHT;
  }
  return moved;
}

function costOf({ cpuMicroseconds }: Measurement): number {
  return Math.max(1, cpuMicroseconds.median);
}

/** 1, 2, 5, 10, 20 and so on, as far as they are within. */
function gridOf(low: number, high: number): number[] {
  const decades = Array.from({ length: 7 }, (_, exponent) => 10 ** exponent);
  return decades
    .flatMap((decade) => [decade, 2 * decade, 5 * decade])
    .filter((cost) => Math.log10(cost) >= low && Math.log10(cost) <= high);
}

function shortOf(title: string): string {
  return title.replaceAll('`', '').split(':')[0] ?? title;
}

function text(x: number, y: number, content: string, anchor = 'start', kind?: string): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x}" y="${y}" text-anchor="${anchor}"${kind ? ` class="${kind}"` : ''}>${escaped}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
