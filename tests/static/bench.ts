/** Finds figures of the benchmark that are of another gateway than today's, or that another document does not repeat. */

import { boundsOf, COSTS, COUNTED } from '../load/request-costs.ts';
import { readDocument } from '../support/documents.ts';

const PAGE = 'tests/bench/results/table.md';
export async function benchProblems(): Promise<string[]> {
  const { text } = await readDocument(PAGE);
  return [...staleCounts(text), ...(await missingFigures(text))];
}

/** The first cells of a line, up to `[` or the end of each. */
function line(text: string, title: string): string[] {
  const found = text.split('\n').find((each) => each.startsWith(`| ${title} | `)) ?? '';
  const [, ...cells] = found.split(' | ');
  return cells.map((cell) => cell.split(' ', 1)[0] ?? '');
}

/** The hot path's guard counts what a request costs; beyond its tolerance the figures need a new run. */
function staleCounts(text: string): string[] {
  const counts = text.split('## Counts ')[1] ?? '';
  return COSTS.flatMap(([name, , , cost]) => {
    const then = line(counts, name).map(Number);
    const stale = COUNTED.filter((count, index) => {
      const [least, most] = boundsOf(then[index] ?? Number.NaN, count);
      return !(least <= cost[count] && cost[count] <= most);
    });
    return stale.map((count) => `${PAGE} needs a new run: ${name} has ${cost[count]} ${count} today`);
  });
}

async function missingFigures(text: string): Promise<string[]> {
  const { text: sizing } = await readDocument('deploy/sizing.md');
  const shown = [
    `| a proxied call | ${line(text, 'proxied, 1.8 KB, µs')[0]} µs |`,
    `| a track of 10 MB | ${line(text, 'proxied, 10 MB, ms')[0]} ms |`,
    `| ${line(text, 'refresh and retry, µs')[0]} µs, `,
  ];
  const missing = shown.filter((part) => !sizing.includes(part));
  return missing.map((part) => `deploy/sizing.md does not say: ${part}`);
}
