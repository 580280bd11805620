/** The gateway beside others that do the same work: `bun run bench`; its options are in the README beside it. */

import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { picture } from './picture.ts';
import { missingOf, OTHER_CORE } from './processes.ts';
import { run } from './run.ts';
import { costTable, logCostTable, markdown, page } from './table.ts';

const README = new URL('README.md', import.meta.url).pathname;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    rows: { type: 'string', default: '' },
    beside: { type: 'string', multiple: true, default: [] },
    results: { type: 'string' },
    'write-readme': { type: 'boolean', default: false },
  },
});
const { quick: isQuick, only, rows, beside, 'write-readme': writesReadme } = values;
if (writesReadme && (isQuick || only || rows || beside.length)) {
  throw new Error('only a whole run of the contenders alone may go into the README');
}
const missing = missingOf(['taskset', 'wrk', 'nginx']);
if (missing.length) throw new Error(`bench needs ${missing.join(' and ')}`);
Bun.spawnSync(['taskset', '-a', '-c', '-p', `${OTHER_CORE}`, `${process.pid}`]);

const folder = await mkdtemp(`${tmpdir()}/bench-`);
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
const list = (text: string) => text.split(',').filter(Boolean);
const results = await run({ isQuick, only: list(only), rows: list(rows), beside, folder });
console.log(`\n${page(results)}`);
const resultFolder = writesReadme ? new URL('results', import.meta.url).pathname : values.results;
if (resultFolder !== undefined) {
  await Bun.write(`${resultFolder}/table.md`, page(results));
  await Bun.write(`${resultFolder}/cost.svg`, picture(results.measurements));
}
if (writesReadme) {
  const { measurements, date, machine, rounds } = results;
  const source = `${date}, ${machine}; medians of ${rounds} rounds and ± half of their range.`;
  const image = '![CPU time of a request, by contender and by size of the body](results/cost.svg)';
  const tables = [costTable(measurements), logCostTable(measurements)].map(markdown);
  const content = [...tables, source, image].join('\n\n');
  const between = /(?<=<!-- bench -->\n).*(?=<!-- \/bench -->)/s;
  await Bun.write(
    README,
    (await Bun.file(README).text()).replace(between, () => `\n${content}\n\n`),
  );
}
process.exit(results.problems.length ? 1 : 0);
