import { describe, expect, it } from 'bun:test';
import { readdirSync } from 'node:fs';
import { describeWith, program } from '../../support/requirements.ts';
import { MONITORING, readAlerts, readDashboard } from './alerts-and-dashboard.ts';

const CASES = new URL('alerts/', import.meta.url).pathname;
const CASE_FILES = readdirSync(CASES).map((name) => CASES + name);
const LINT = ['--lint=all', '--lint-fatal'];

describeWith([program('promtool')], 'promtool', () => {
  it.each([
    ['has no objection to the alerts', ['check', 'rules', ...LINT, `${MONITORING}alerts.yml`]],
    ['has no objection to the example', ['check', 'config', ...LINT, `${MONITORING}prometheus.yml`]],
    // With the severity and every annotation.
    ['sees each alert be quiet and fire as its cases say', ['test', 'rules', ...CASE_FILES]],
  ])('%s', (_, options) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(['promtool', ...options]);
    expect(exitCode, `${stdout}${stderr}`).toBe(0);
  });
});

describe('each alert', () => {
  it('has a case in which it must be quiet, and one in which it must fire', async () => {
    const cases = (await Promise.all(CASE_FILES.map((file) => Bun.file(file).text()))).join('\n');
    for (const { alert } of await readAlerts()) {
      expect(cases).toMatch(new RegExp(`alertname: ${alert}, .*exp_alerts: \\[\\] }`));
      expect(cases).toMatch(new RegExp(`alertname: ${alert}\n.*\n +exp_alerts:\n +- exp_labels`));
    }
  });
});

describe('the dashboard', () => {
  it('has panels with distinct ids, and distinct query ids in each', async () => {
    const { panels, charts } = await readDashboard();
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const { title, targets } of charts)
      expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length);
  });
});
