import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { projectFiles, ROOT } from '../support/documents.ts';
import { runToEnd } from '../support/run-to-end.ts';
import { TLS_PROXIES } from '../support/tls-proxies.ts';

const HELPER = 'tests/support/requirements.ts';
const TESTS = `
  import { it } from 'bun:test';
  import { describeWith, itWith, program } from '${ROOT}${HELPER}';
  describeWith([program('none-such')], 'a group', () => it('runs', () => {}));
  itWith([program('none-such')], 'a test', async () => {});
  describeWith([program('sh')], 'another group', () => it('runs too', () => {}));
  itWith([program('sh')], 'another test', async () => {});
`;

describe('a test whose program is missing', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(`${tmpdir()}/requirements-`);
    await Bun.write(`${folder}/some.test.ts`, TESTS);
  });
  afterAll(() => rm(folder, { recursive: true }));

  const run = (CI: string) =>
    runToEnd([process.execPath, 'test'], { cwd: folder, environment: { CI, NO_COLOR: '1' } });

  it('fails in CI and names the program, while the others run', async () => {
    const { status, errors } = await run('true');
    expect(status).toBe(1);
    expect(errors).toMatch(/\b2 pass\n\s*2 fail\n/);
    expect(errors).toContain('(fail) a group > has what it needs');
    expect(errors).toContain('(fail) a test');
    expect(errors).toContain('missing here: none-such. With CI=true no test may be skipped.');
  });

  it('is skipped elsewhere, and prints the program', async () => {
    const { status, output, errors } = await run('');
    expect(status).toBe(0);
    expect(errors).toMatch(/\b2 pass\n\s*2 skip\n\s*0 fail\n/);
    expect(output).toContain('skipped: a group: missing here: none-such\nskipped: a test: missing here');
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
    const all = new Set([...required, ...TLS_PROXIES.map(({ program }) => program)]);
    expect([...all].toSorted()).toEqual(installed.toSorted());
  });
});
