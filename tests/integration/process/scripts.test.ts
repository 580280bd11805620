import { expect, it } from 'bun:test';
import { appendFile, cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { ROOT } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { linesOf } from '../../support/lines-of.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { SETTINGS } from './bun-run-start.ts';

it('`bun run keys` prints a new key of 32 bytes', async () => {
  const keys = [1, 2].map(() => runToEnd([process.execPath, 'run', '--silent', 'keys'], { cwd: ROOT }));
  const [first, second] = (await Promise.all(keys)).map(({ output }) => output.trim());
  expect(first).toMatch(/^[\w-]{43}$/);
  expect(second).not.toBe(first);
});

it('`bun run dev` starts the gateway once more for each change of a source file', async () => {
  const copy = await mkdtemp(`${tmpdir()}/dev-`);
  for (const each of ['src', 'package.json'])
    await cp(`${ROOT}/${each}`, `${copy}/${each}`, { recursive: true });
  await symlink(`${ROOT}/node_modules`, `${copy}/node_modules`);
  await using dev = Bun.spawn([process.execPath, 'run', '--silent', 'dev'], {
    cwd: copy,
    env: { PATH: process.env['PATH'], ...SETTINGS },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let starts = 0;
  const read = (async () => {
    for await (const line of linesOf(dev.stdout)) starts += Number(line.includes('listens on'));
  })();
  await eventually(() => starts === 1, 'the start');
  for (const changes of [1, 2]) {
    await appendFile(`${copy}/src/gateway/http/messages.ts`, '\n');
    await eventually(() => starts > changes, 'the restart');
    expect(starts).toBe(changes + 1);
  }
  dev.kill();
  await read;
  expect(starts).toBe(3);
  await rm(copy, { recursive: true });
});
