/** The cost as a picture: a bar for each contender, for a small response and for a track. */

import type { Measurement } from './measure.ts';
import { quartiles } from './statistics.ts';

const WIDTH = 760;
const LEFT = 290;
const STEP = 26;
const LABEL = 'CPU time of a request, by contender and by size of the body';

/** The colours differ on white and on black; the text follows the reader's scheme. */
const STYLE = `
text { font: 13px system-ui, sans-serif; fill: #333 } .title { font-weight: 600; font-size: 14px }
rect { fill: #7a8899 } .gateway { fill: #d9662b } line { stroke: #888; stroke-width: 1 }
@media (prefers-color-scheme: dark) { text { fill: #e6e6e6 } }`;

export function picture(measurements: readonly Measurement[]): string {
  const elements: string[] = [];
  let y = STEP / 2;
  for (const id of ['models', 'stream']) {
    const bars = measurements
      .filter(({ row }) => row.id === id)
      .map((bar) => ({ ...bar, ...quartiles(bar.rounds.map((round) => round.cpuMicroseconds)) }));
    const longest = Math.max(...bars.map(({ upper }) => upper));
    const x = (cost: number) => Math.round(LEFT + (cost / longest) * (WIDTH - LEFT - 70));
    if (bars[0])
      elements.push(
        `<text class="title" y="${y + 4}">CPU time of one request, µs: ${bars[0].row.title}</text>`,
      );
    for (const { contender, median, lower, upper } of bars) {
      y += STEP;
      elements.push(
        `<text x="${LEFT - 8}" y="${y + 4}" text-anchor="end">${contender.title.replaceAll('`', '')}</text>`,
        `<rect class="${contender.id}" x="${LEFT}" y="${y - 8}" width="${x(median) - LEFT}" height="16"/>`,
        `<line x1="${x(lower)}" x2="${x(upper)}" y1="${y}" y2="${y}"/>`,
        `<text x="${x(upper) + 6}" y="${y + 4}">${Math.round(median)}</text>`,
      );
    }
    y += 2 * STEP;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" role="img" aria-label="${LABEL}">
<style>${STYLE}</style>
${elements.join('\n')}
</svg>\n`;
}
