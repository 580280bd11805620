import { expect, it } from 'bun:test';
import { ROOT } from '../support/documents.ts';
import { runToEnd } from '../support/run-to-end.ts';
import { createFolder } from '../support/temporary-folder.ts';

const TESTS = `
  import { it } from 'bun:test';
  import { describeWith, itWith, program } from '${ROOT}tests/support/requirements.ts';
  describeWith([program('none-such')], 'a group', () => it('runs', () => {}));
  itWith([{ name: 'a quiet machine', isMet: false }], 'a test', async () => {});
  describeWith([program('sh')], 'another group', () => it('runs too', () => {}));
  itWith([program('sh'), { name: 'a machine', isMet: true }], 'another test', async () => {});
`;

it.each([
  ['all files', [], 1],
  // One process has two of three files.
  ['each file with --parallel', ['--parallel=2', '--no-isolate'], 3],
])(
  'a test without what it needs is skipped elsewhere, and named once, at the end of %s',
  async (_, options, lines) => {
    await using folder = await createFolder();
    const names = ['one', 'two', 'three'];
    for (const name of names)
      await Bun.write(`${folder.path}/${name}.test.ts`, TESTS.replace('a group', name));
    const command = [process.execPath, 'test', `--preload=${ROOT}tests/support/every-test.ts`, ...options];
    const { status, output, errors } = await runToEnd(command, { cwd: folder.path, environment: { CI: '' } });
    expect(status).toBe(0);
    const reports = (output + errors).match(/^skipped, for what is missing here: .*/gm) ?? [];
    expect(reports).toHaveLength(lines);
    for (const name of names)
      expect(reports.join('\n').split(`${name} (none-such); a test (a quiet machine)`)).toHaveLength(2);
  },
);

it('a test without what it needs fails in CI and says what is missing, while the others run', async () => {
  await using folder = await createFolder();
  await Bun.write(`${folder.path}/some.test.ts`, TESTS);
  const environment = { CI: 'true', NO_COLOR: '1' };
  const command = [process.execPath, 'test'];
  const { status, errors } = await runToEnd(command, { cwd: folder.path, environment });
  expect(status).toBe(1);
  expect(errors).toMatch(/\b2 pass\n\s*2 skip\n\s*2 fail\n/);
  for (const missing of ['none-such', 'a quiet machine'])
    expect(errors).toContain(`missing here: ${missing}. With CI=true no test may be skipped.`);
});
