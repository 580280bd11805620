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
