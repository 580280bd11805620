/** The gateway beside others that do the same: `bun run bench [--quick] [--only=gateway,nginx] [--rows=models,range]`. */

import { rmSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { parseOptions } from './options.ts';
import { costPlot } from './plot.ts';
import { withBench } from './readme.ts';
import type { Results } from './results.ts';
import { run } from './run.ts';
import { pinToRest } from './running.ts';
import { allTables, costTable } from './table.ts';

const NEEDED = ['taskset', 'wrk', 'nginx'];
const LIMIT_MS = 40 * 60 * 1000;
/** Above it something else was running, and the figures are not worth keeping. */
const QUIET = 0.7;
const README = new URL('README.md', import.meta.url);

async function main(args: readonly string[]): Promise<void> {
  const options = parseOptions(args);
  const missing = NEEDED.filter((program) => !Bun.which(program));
  if (missing.length) throw new Error(`bench needs ${missing.join(' and ')}`);
  if (navigator.hardwareConcurrency < 2) throw new Error('bench needs two cores');
  pinToRest(process.pid);
  const folder = await mkdtemp(`${tmpdir()}/bench-`);
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const results = await run(options, folder, console.log);
  console.log(`\n${allTables(results)}`);
  if (results.loadBefore > QUIET) {
    console.log(`warning: the machine was not quiet before the run (load ${results.loadBefore.toFixed(1)})`);
  }
  if (options.results !== undefined) await write(results, options.results);
  if (options.writeReadme) await writeReadme(results);
  process.exit(results.problems.length ? 1 : 0);
}

async function write(results: Results, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await Bun.write(`${folder}/results.json`, `${JSON.stringify(results, null, 2)}\n`);
  await Bun.write(`${folder}/table.md`, allTables(results));
  await Bun.write(`${folder}/cost.svg`, costPlot(results));
}

async function writeReadme(results: Results): Promise<void> {
  const picture = '![CPU time of a request, by contender and by size of the body](results/cost.svg)';
  const origin = `${results.date}, ${results.machine}; medians of ${results.rounds} rounds and ± half of their range.`;
  const content = `\n${costTable(results)}\n\n${origin}\n\n${picture}\n`;
  await Bun.write(README, withBench(await Bun.file(README).text(), content));
}

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
setTimeout(() => {
  console.error('bench takes too long: it is given up');
  process.exit(1);
}, LIMIT_MS).unref();
try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : error}`);
  process.exit(1);
}
