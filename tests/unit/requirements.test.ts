import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { TLS_PROXIES } from '../deploy/proxies/tls-proxies.ts';
import { projectFiles, ROOT } from '../support/documents.ts';
import { runToEnd } from '../support/run-to-end.ts';

const HELPER = 'tests/support/requirements.ts';
const REPORT = 'tests/support/report-skipped.ts';
const TESTS = `
  import { it } from 'bun:test';
  import { describeWith, itWith, machine, program } from '${ROOT}${HELPER}';
  describeWith([program('none-such')], 'a group', () => it('runs', () => {}));
  itWith([machine('a quiet machine', false)], 'a test', async () => {});
  describeWith([program('sh')], 'another group', () => it('runs too', () => {}));
  itWith([program('sh'), machine('a machine', true)], 'another test', async () => {});
`;

describe('a test without what it needs', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(`${tmpdir()}/requirements-`);
    await Bun.write(`${folder}/some.test.ts`, TESTS);
  });
  afterAll(() => rm(folder, { recursive: true }));

  const run = (CI: string) => {
    const environment = { CI, NO_COLOR: '1' };
    return runToEnd([process.execPath, 'test', '--preload', ROOT + REPORT], { cwd: folder, environment });
  };

  it('fails in CI and says what is missing, a program or a right, while the others run', async () => {
    const { status, errors } = await run('true');
    expect(status).toBe(1);
    expect(errors).toMatch(/\b2 pass\n\s*2 fail\n/);
    expect(errors).toContain('(fail) a group > has what it needs');
    expect(errors).toContain('missing here: none-such. With CI=true no test may be skipped.');
    expect(errors).toContain('(fail) a test');
    expect(errors).toContain('missing here: a quiet machine. With CI=true no test may be skipped.');
  });

  it('is skipped elsewhere, and named in one line at the end', async () => {
    const { status, output, errors } = await run('');
    expect(status).toBe(0);
    expect(errors).toMatch(/\b2 pass\n\s*2 skip\n\s*0 fail\n/);
    const line = 'skipped, for what is missing here: a group (none-such); a test (a quiet machine)\n';
    expect(output).toEndWith(line);
    expect(await Bun.file(`${ROOT}bunfig.toml`).text()).toContain(`preload = ["./${REPORT}"]`);
  });
});

describe('the tests', async () => {
  const paths = (await projectFiles()).filter((path) => /^tests\/.*\.ts$/.test(path));
  const files = await Promise.all(
    paths.map(async (path) => ({ path, text: await Bun.file(ROOT + path).text() })),
  );

  it('are skipped by nothing but their requirements', () => {
    const skips = /\.(?:skip|skipIf|todo|todoIf|if)\(|\bx(?:it|test|describe)\(/;
    expect(files.filter(({ text }) => skips.test(text)).map(({ path }) => path)).toEqual([HELPER]);
  });

  it('require no program that .ci/run does not install', async () => {
    const list = /<<'PROGRAMS'\n(.*?)\nPROGRAMS\n/s.exec(await Bun.file(`${ROOT}.ci/run`).text())?.[1] ?? '';
    const installed = list.split('\n').map((line) => line.split(' ')[0] ?? '');
    const others = files.filter(({ path }) => !path.startsWith('tests/unit/requirements.'));
    const required = others.flatMap(({ text }) =>
      [...text.matchAll(/\bprogram\('([^']+)'\)/g)].map(([, name = '']) => name),
    );
    // npm's npx fetches Bun.
    const all = new Set(['npm', ...required, ...TLS_PROXIES.map(({ program }) => program)]);
    expect([...all].toSorted()).toEqual(installed.toSorted());
  });
});
