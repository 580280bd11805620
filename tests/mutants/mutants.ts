/**
 * `bun run mutants [room...]`: changes one line at a time in a copy of what is committed, runs the tests of `bun run
 * test` on it, and notes in `mutants.tsv` which test file failed first. `--changed [base]` tries the lines that a change
 * touches instead, or whose tests it cuts, and fails when one survives.
 */

import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { $ } from 'bun';
import { mutantsOfChange } from './changed.ts';
import { type Mutant, read, write } from './list.ts';

/** A mutant can make a test wait for ever. */
const PATIENCE_MS = 300_000;
const SUITE = ['unit', 'integration', 'faults', 'client', 'studio/page', 'studio/sandbox'];
/** Of a change. Each takes half a minute. */
const MOST = 40;

const options = { changed: { type: 'boolean' } } as const;
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const copy = await mkdtemp(`${tmpdir()}/mutants-`);
await $`git clone --quiet ${process.cwd()} ${copy}`;
await symlink(`${process.cwd()}/node_modules`, `${copy}/node_modules`);
if (values.changed) await tryChange(positionals[0] ?? 'main');
else await tryList();
await rm(copy, { recursive: true });

async function tryChange(base: string): Promise<void> {
  const all = await mutantsOfChange(base);
  const red = all.length ? await failure(SUITE) : undefined;
  if (red) throw new Error(`${red} fails without a mutant`);
  const tried: Mutant[] = [];
  for (const mutant of all.slice(0, MOST)) tried.push(await attempt(mutant));
  const survivors = tried.filter(({ caughtBy }) => caughtBy === 'nothing').length;
  console.log(`${tried.length} of ${all.length} tried: ${survivors} survived`);
  if (survivors) process.exitCode = 1;
}

async function tryList(): Promise<void> {
  const list = await read();
  for (const [index, mutant] of list.entries()) {
    if (positionals.length > 0 && !positionals.includes(mutant.room)) continue;
    list[index] = await attempt(mutant);
    await write(list);
  }
}

/** Prints which test catches the mutant. */
async function attempt({ room, file, before, after }: Mutant): Promise<Mutant> {
  const path = `${copy}/${file}`;
  const text = await Bun.file(path).text();
  const lines = text.split('\n');
  const at = lines.indexOf(before);
  if (at < 0) throw new Error(`${file} has no such line: ${before}`);
  await Bun.write(path, lines.toSpliced(at, 1, after).join('\n'));
  const caughtBy = (await failure(room === 'deploy' ? ['deploy'] : SUITE)) ?? 'nothing';
  await Bun.write(path, text);
  console.log([room, file, before.trim(), after.trim(), caughtBy].join('\t'));
  return { room, file, before, after, caughtBy };
}

/** The first test file that fails; undefined when none does. */
async function failure(folders: readonly string[]): Promise<string | undefined> {
  const paths = folders.map((folder) => `tests/${folder}/`);
  const command = ['bun', 'test', '--bail', '--parallel=3', '--no-isolate', '--timeout', '60000', ...paths];
  // A group of its own, so that the servers that tests start end with it.
  const run = Bun.spawn(['timeout', '--kill-after=5', String(PATIENCE_MS / 1000), ...command], {
    cwd: copy,
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  });
  const output = await new Response(run.stderr).text();
  if ((await run.exited) === 0) return undefined;
  const upToIt = output.slice(0, output.search(/\(fail\)|^error: /m));
  return [...upToIt.matchAll(/^(tests\/\S+\.test\.ts):$/gm)].at(-1)?.[1] ?? 'a crash or a hang';
}
