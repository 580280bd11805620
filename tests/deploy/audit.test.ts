import { expect, it } from 'bun:test';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeWith, program } from '../support/requirements.ts';
import { runToEnd } from '../support/run-to-end.ts';

const AUDIT = fileURLToPath(new URL('../../.ci/audit', import.meta.url));
const skipped = (folder: string) => `skipped: bun audit of ${folder}: no answer from the registry\n`;
const PASSED = 'verdict: no advisory that is high or critical\n';
const UNASKED = `${skipped('.')}${skipped('tests/bench')}no verdict: the registry`;

describeWith([program('bash')], 'bun run audit', () => {
  // The registry responds once for the project and once for its benchmark.
  it.each([
    ['with no advisory', [200], 0, PASSED],
    ['with a moderate one', ['moderate', 200], 0, PASSED],
    ['with a high one', [200, 'high'], 1, '\nverdict: advisories, high or critical\n'],
    ['with a critical one', ['critical', 200], 1, '\nverdict: advisories, high or critical\n'],
    ['with 404', [404, 404], 0, `${UNASKED} has no audit endpoint\n`],
    ['with 503', [503, 503], 0, `${UNASKED} did not respond\n`],
    ['with a high one, and then with 404', ['high', 404], 1, '\nverdict: advisories, high or critical\n'],
  ])('judges a registry that responds %s', async (_, responses, expected, verdict) => {
    let count = 0;
    const respond = () => {
      const response = responses[Math.min(count++, 1)];
      if (typeof response === 'number') return Response.json({}, { status: response });
      const url = 'https://advisories.test/1';
      const advisory = { id: 1, url, title: 'What it does', severity: response, vulnerable_versions: '<99' };
      return Response.json({ elysia: [advisory] });
    };
    await using registry = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: respond });
    const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
    const environment = { PATH, NO_COLOR: '1', NPM_CONFIG_REGISTRY: registry.url.href };
    const { status, output } = await runToEnd(['bash', AUDIT], { environment });
    expect(status).toBe(expected);
    if (expected === 0) expect(output).toBe(verdict);
    else expect(output).toEndWith(verdict);
    expect(output.includes('https://advisories.test/1')).toBe(expected === 1);
  });
});
