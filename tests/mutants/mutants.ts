/**
 * `bun run mutants [room...]`: changes one line at a time in a copy of the project, runs the tests nearest to it, and
 * notes in `mutants.tsv` which test file failed first. `--all` also runs the rest of `bun run test` on what they miss,
 * `--missed` tries only what nothing has caught yet.
 */

import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { $ } from 'bun';
import { type Mutant, ROOMS, read, type Tried, write } from './list.ts';

/** A mutant can make a test wait for ever. */
const PATIENCE_MS = 150_000;
const SUITE = ['unit', 'integration', 'page', 'faults'];

const { values, positionals } = parseArgs({
  options: { all: { type: 'boolean' }, missed: { type: 'boolean' } },
  allowPositionals: true,
});
const copy = await mkdtemp(`${tmpdir()}/mutants-`);
await $`git clone --quiet ${process.cwd()} ${copy}`;
await symlink(`${process.cwd()}/node_modules`, `${copy}/node_modules`);

const list = await read();
const isTried = ({ room, caughtBy }: Tried) =>
  (positionals.length === 0 || positionals.includes(room)) &&
  (!values.missed || caughtBy === 'nothing' || caughtBy === '?');
for (const [index, mutant] of list.entries()) {
  if (!isTried(mutant)) continue;
  const caughtBy = await whatCatches(mutant);
  list[index] = { ...mutant, caughtBy };
  console.log([mutant.room, mutant.file, mutant.before.trim(), mutant.after.trim(), caughtBy].join('\t'));
  await write(list);
}
await rm(copy, { recursive: true });
for (const room of Object.keys(ROOMS)) {
  const tried = list.filter((mutant) => mutant.room === room && mutant.caughtBy !== '?');
  const caught = tried.filter(({ caughtBy }) => caughtBy !== 'nothing');
  console.log(`${room}: ${caught.length} of ${tried.length} caught`);
}

async function whatCatches({ room, file, before, after }: Mutant): Promise<string> {
  const path = `${copy}/${file}`;
  const text = await Bun.file(path).text();
  const changed = `\n${text}`.replace(`\n${before}\n`, () => (after === '' ? '\n' : `\n${after}\n`)).slice(1);
  if (changed === text) return 'no such line';
  await Bun.write(path, changed);
  const near = ROOMS[room]?.[2].split(' ') ?? SUITE;
  const caughtBy =
    (await failure(near, [])) ?? (values.all ? await failure(SUITE, ['--parallel=2']) : undefined);
  await Bun.write(path, text);
  return caughtBy ?? 'nothing';
}

/** The first test file that fails; undefined when none does. */
async function failure(folders: string[], options: string[]): Promise<string | undefined> {
  const paths = folders.map((folder) => `tests/${folder}/`);
  const command = ['bun', 'test', '--bail', '--timeout', '20000', ...options, ...paths];
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
