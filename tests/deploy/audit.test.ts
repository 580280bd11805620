import { expect, it } from 'bun:test';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeWith, program } from '../support/requirements.ts';
import { runToEnd } from '../support/run-to-end.ts';

const AUDIT = fileURLToPath(new URL('../../.ci/audit', import.meta.url));
const PASSED = 'verdict: no advisory that is high or critical\n';
const FAILED = 'verdict: advisories, high or critical\n';
const SKIPPED = ['.', 'tests/bench'].map(
  (folder) => `skipped: bun audit of ${folder}: no answer from the registry\n`,
);
const URL_OF_IT = 'https://advisories.test/1';

function advisory(severity: string): Response {
  const title = 'It does what it should not';
  return Response.json({ elysia: [{ id: 1, url: URL_OF_IT, title, severity, vulnerable_versions: '<99' }] });
}

describeWith([program('bash')], 'bun run audit', () => {
  // The registry responds once for the project and once for its benchmark.
  it.each([
    ['with no advisory', () => Response.json({}), 0, PASSED],
    ['with a moderate one', () => advisory('moderate'), 0, PASSED],
    ['with a high one', () => advisory('high'), 1, FAILED],
    ['with a critical one', () => advisory('critical'), 1, FAILED],
    [
      'with 404',
      () => new Response('', { status: 404 }),
      0,
      'no verdict: the registry has no audit endpoint\n',
    ],
    ['with 503', () => new Response('', { status: 503 }), 0, 'no verdict: the registry did not respond\n'],
    [
      'with a high one, and then with 404',
      (count: number) => (count ? new Response('', { status: 404 }) : advisory('high')),
      1,
      FAILED,
    ],
  ])('judges a registry that responds %s', async (what, respond, expected, verdict) => {
    let count = 0;
    const fetch = () => respond(count++);
    await using registry = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch });
    const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
    const environment = { PATH, NO_COLOR: '1', NPM_CONFIG_REGISTRY: registry.url.href };
    const { status, output } = await runToEnd(['bash', AUDIT], { environment });
    expect(status).toBe(expected);
    if (expected === 0) expect(output).toBe((/\d/.test(what) ? SKIPPED.join('') : '') + verdict);
    else expect(output).toEndWith(`\n${verdict}`);
    expect(output.includes(URL_OF_IT)).toBe(expected === 1);
  });
});
