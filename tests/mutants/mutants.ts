/**
 * `bun run mutants [base]`: changes lines of the gateway that are new since the base, by default `main`, one at a time in a
 * copy of what is committed, and runs the tests of `bun run test` on it. Prints which test file failed first, and fails
 * when none did.
 */

import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { $ } from 'bun';
import { type Mutant, mutantsOfChange } from './changed.ts';

/** A mutant can make a test wait for ever. */
const PATIENCE_MS = 300_000;
const SUITE = ['unit', 'integration', 'faults', 'client', 'studio/page', 'studio/sandbox'];
/** Each takes half a minute. */
const MOST = 40;

const copy = await mkdtemp(`${tmpdir()}/mutants-`);
await $`git clone --quiet ${process.cwd()} ${copy}`;
await symlink(`${process.cwd()}/node_modules`, `${copy}/node_modules`);
const all = await mutantsOfChange(process.argv[2] ?? 'main');
const red = all.length ? await failure() : undefined;
if (red) throw new Error(`${red} fails without a mutant`);
const caughtBy: (string | undefined)[] = [];
for (const mutant of all.slice(0, MOST)) caughtBy.push(await attempt(mutant));
const survivors = caughtBy.filter((test) => test === undefined).length;
console.log(`${caughtBy.length} of ${all.length} tried: ${survivors} survived`);
if (survivors) process.exitCode = 1;
await rm(copy, { recursive: true });

/** Prints and returns the test file that fails first; undefined when none does. */
async function attempt({ file, before, after }: Mutant): Promise<string | undefined> {
  const path = `${copy}/${file}`;
  const text = await Bun.file(path).text();
  const lines = text.split('\n');
  const at = lines.indexOf(before);
  if (at < 0) throw new Error(`${file} has no such line: ${before}`);
  await Bun.write(path, lines.toSpliced(at, 1, after).join('\n'));
  const caughtBy = await failure();
  await Bun.write(path, text);
  console.log([file, before.trim(), after.trim(), caughtBy ?? 'nothing'].join('\t'));
  return caughtBy;
}

/** The first test file that fails; undefined when none does. */
async function failure(): Promise<string | undefined> {
  const paths = SUITE.map((folder) => `tests/${folder}/`);
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
