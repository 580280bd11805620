import { expect, it } from 'bun:test';
import { ROOT } from '../support/documents.ts';
import { describeWith, program } from '../support/requirements.ts';
import { runToEnd } from '../support/run-to-end.ts';

describeWith([program('bash')], 'bun run audit', () => {
  // The registry responds once for the project and once for its benchmark.
  it.each([
    ['with a moderate one', ['moderate', 200], 0, 'verdict: no advisory that is high or critical\n'],
    ['with 404', [404, 404], 0, 'no verdict: the registry has no audit endpoint\n'],
    ['with 404, and then with a high one', [404, 'high'], 1, 'verdict: advisories, high or critical\n'],
  ])('judges a registry that responds %s', async (_, responses, expected, verdict) => {
    let count = 0;
    const respond = () => {
      const response = responses[count++];
      if (typeof response === 'number') return Response.json({}, { status: response });
      const url = 'https://advisories.test/1';
      const advisory = { id: 1, url, title: 'What it does', severity: response, vulnerable_versions: '<99' };
      return Response.json({ elysia: [advisory] });
    };
    await using registry = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: respond });
    const environment = { NO_COLOR: '1', NPM_CONFIG_REGISTRY: registry.url.href };
    const { status, output } = await runToEnd(['bash', `${ROOT}.ci/audit`], { environment });
    expect(status).toBe(expected);
    expect(output).toEndWith(verdict);
    expect(output.includes('https://advisories.test/1')).toBe(expected === 1);
  });
});
