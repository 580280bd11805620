import { expect, it } from 'bun:test';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { ROOT } from '../support/documents.ts';
import { runToEnd } from '../support/run-to-end.ts';

const TESTS = `
  import { it } from 'bun:test';
  import { describeWith, itWith, machine, program } from '${ROOT}tests/support/requirements.ts';
  describeWith([program('none-such')], 'a group', () => it('runs', () => {}));
  itWith([machine('a quiet machine', false)], 'a test', async () => {});
  describeWith([program('sh')], 'another group', () => it('runs too', () => {}));
  itWith([program('sh'), machine('a machine', true)], 'another test', async () => {});
`;

it('a test without what it needs fails in CI and says what is missing, while the others run', async () => {
  const folder = await mkdtemp(`${tmpdir()}/requirements-`);
  await Bun.write(`${folder}/some.test.ts`, TESTS);
  const environment = { CI: 'true', NO_COLOR: '1' };
  const { status, errors } = await runToEnd([process.execPath, 'test'], { cwd: folder, environment });
  expect(status).toBe(1);
  expect(errors).toMatch(/\b2 pass\n\s*2 fail\n/);
  for (const missing of ['none-such', 'a quiet machine'])
    expect(errors).toContain(`missing here: ${missing}. With CI=true no test may be skipped.`);
});
