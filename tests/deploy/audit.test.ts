import { expect, it } from 'bun:test';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeWith, program } from '../support/requirements.ts';
import { runToEnd } from '../support/run-to-end.ts';

const AUDIT = fileURLToPath(new URL('../../.ci/audit', import.meta.url));
const PASSED = 'verdict: no advisory that is high or critical\n';
const FAILED = '\nverdict: advisories, high or critical\n';
const TITLE = 'It does what it should not';

/** Audits against a registry that has this response to every request. */
async function audit(respond: () => Response) {
  await using registry = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: respond });
  const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
  const environment = { PATH, NO_COLOR: '1', NPM_CONFIG_REGISTRY: registry.url.href };
  const { status, output } = await runToEnd(['bash', AUDIT], { environment });
  return { status, output };
}

function advisory(severity: string): Response {
  const url = 'https://advisories.test/1';
  return Response.json({ elysia: [{ id: 1, url, title: TITLE, severity, vulnerable_versions: '<99' }] });
}

describeWith([program('bash')], 'bun run audit', () => {
  it('prints only its verdict when no advisory is known', async () => {
    expect(await audit(() => Response.json({}))).toEqual({ status: 0, output: PASSED });
  });

  it.each([
    ['moderate', 0, PASSED],
    ['high', 1, FAILED],
    ['critical', 1, FAILED],
  ])('judges an advisory that is %s by the exit status %d', async (severity, expected, verdict) => {
    const { status, output } = await audit(() => advisory(severity));
    expect(status).toBe(expected);
    expect(output.includes(`${severity}: ${TITLE}`)).toBe(expected === 1);
    expect(output).toEndWith(verdict);
  });

  it.each([
    [404, 'the registry has no audit endpoint'],
    [405, 'the registry has no audit endpoint'],
    [503, 'the registry did not respond'],
  ])('passes without a verdict where the registry responds with %d', async (refusal, reason) => {
    const { status, output } = await audit(() => new Response('', { status: refusal }));
    expect(status).toBe(0);
    expect(output.split('\n')).toEqual([
      'skipped: bun audit of .: no answer from the registry',
      'skipped: bun audit of tests/bench: no answer from the registry',
      `no verdict: ${reason}`,
      '',
    ]);
  });

  it('fails for an advisory in one folder when the other cannot be judged', async () => {
    let requests = 0;
    const { status, output } = await audit(() =>
      requests++ ? new Response('', { status: 404 }) : advisory('high'),
    );
    expect(status).toBe(1);
    expect(output).toEndWith(FAILED);
  });
});
