/** The gateway beside others that do the same work: `bun run bench`; its options are in the README beside it. */

import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { picture } from './picture.ts';
import { missingOf, OTHER_CORE } from './processes.ts';
import { run } from './run.ts';
import { page } from './table.ts';

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
Bun.spawnSync(['taskset', '-a', '-c', '-p', `${OTHER_CORE}`, `${process.pid}`]);

const folder = await mkdtemp(`${tmpdir()}/bench-`);
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
const list = (text: string) => text.split(',').filter(Boolean);
const results = await run({ isQuick, only: list(only), rows: list(rows), beside, folder });
console.log(`\n${page(results)}`);
if (resultFolder !== undefined) {
  await Bun.write(`${resultFolder}/table.md`, page(results));
  await Bun.write(`${resultFolder}/cost.svg`, picture(results.measurements));
}
process.exit(results.problems.length ? 1 : 0);
