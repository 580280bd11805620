import { expect, it } from 'bun:test';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeWith, program } from '../support/requirements.ts';

const AUDIT = fileURLToPath(new URL('../../.ci/audit', import.meta.url));

/** Audits against a registry that answers so to every question. */
async function audit(answer: () => Response) {
  await using registry = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer });
  const child = Bun.spawn(['bash', AUDIT], {
    env: {
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      NO_COLOR: '1',
      NPM_CONFIG_REGISTRY: registry.url.href,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output, status] = await Promise.all([child.stdout.text(), child.exited]);
  return { status, output };
}

function advisory(severity: string): Response {
  const title = 'It does what it should not';
  const url = 'https://advisories.test/1';
  return Response.json({ elysia: [{ id: 1, url, title, severity, vulnerable_versions: '<99' }] });
}

describeWith([program('bash')], 'bun run audit', () => {
  it('says no more than its verdict when nothing is known against any package', async () => {
    const output = 'verdict: no advisory that is high or critical\n';
    expect(await audit(() => Response.json({}))).toEqual({ status: 0, output });
  });

  it.each(['high', 'critical'])('fails and says why when something %s is', async (severity) => {
    const { status, output } = await audit(() => advisory(severity));
    expect(status).toBe(1);
    expect(output).toContain(`${severity}: It does what it should not`);
    expect(output).toEndWith('\nverdict: advisories, high or critical\n');
  });

  it('lets something moderate pass', async () => {
    const { status, output } = await audit(() => advisory('moderate'));
    expect(status).toBe(0);
    expect(output).toEndWith('verdict: no advisory that is high or critical\n');
  });

  it.each([
    [404, 'the registry has no audit endpoint'],
    [405, 'the registry has no audit endpoint'],
    [503, 'the registry did not respond'],
  ])('says that there is no verdict, and goes on, where the registry says %d', async (refusal, reason) => {
    const { status, output } = await audit(() => new Response('', { status: refusal }));
    expect(status).toBe(0);
    expect(output.split('\n')).toEqual([
      'skipped: bun audit of .: no answer from the registry',
      'skipped: bun audit of tests/bench: no answer from the registry',
      `no verdict: ${reason}`,
      '',
    ]);
  });

  it('fails with what one folder has when the other cannot be judged', async () => {
    let asked = 0;
    const { status, output } = await audit(() =>
      asked++ ? new Response('', { status: 404 }) : advisory('high'),
    );
    expect(status).toBe(1);
    expect(output).toEndWith('verdict: advisories, high or critical\n');
  });
});
