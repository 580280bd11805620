/** The gateway beside others that do the same work: `bun run bench`; its options are in the README beside it. */

import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { picture } from './picture.ts';
import { missingOf, OTHER_CORE } from './processes.ts';
import { run } from './run.ts';
import { page } from './table.ts';

/** Results of a busier machine are not published. */
const MOST_LOAD = 0.5;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    rows: { type: 'string', default: '' },
    beside: { type: 'string', multiple: true, default: [] },
    results: { type: 'string' },
  },
});
const { quick: isQuick, only, rows, beside, results: resultFolder } = values;
const missing = missingOf(['taskset', 'wrk', 'nginx']);
if (missing.length) throw new Error(`bench needs ${missing.join(' and ')}`);
const [loadBefore = 0] = loadavg();
if (resultFolder !== undefined && loadBefore > MOST_LOAD)
  refuse([`the load is ${loadBefore}, above ${MOST_LOAD}`]);
Bun.spawnSync(['taskset', '-a', '-c', '-p', `${OTHER_CORE}`, `${process.pid}`]);

const folder = await mkdtemp(`${tmpdir()}/bench-`);
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
const list = (text: string) => text.split(',').filter(Boolean);
const results = await run({ isQuick, only: list(only), rows: list(rows), beside, folder, loadBefore });
console.log(`\n${page(results)}`);
if (resultFolder !== undefined) {
  const reasons = [...results.problems, ...results.changes];
  if (reasons.length) refuse(reasons);
  await Bun.write(`${resultFolder}/table.md`, page(results));
  await Bun.write(`${resultFolder}/cost.svg`, picture(results.measurements));
}
process.exit(results.problems.length ? 1 : 0);

function refuse(reasons: readonly string[]): never {
  console.error(`The results are not written: ${reasons.join('; ')}.`);
  process.exit(1);
}
