import { describe, expect, it } from 'bun:test';
import { readdirSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { YAML } from 'bun';
import { describeWith, program } from '../../support/requirements.ts';
import { MONITORING, readAlerts, readDashboard } from './alerts-and-dashboard.ts';

const CASES = new URL('alerts/', import.meta.url).pathname;
const CASE_FILES = readdirSync(CASES).map((name) => CASES + name);
const LINT = ['--lint=all', '--lint-fatal'];

const Expectation = Type.Object({ alertname: Type.String(), exp_alerts: Type.Array(Type.Unknown()) });
const Cases = Type.Object({
  tests: Type.Array(Type.Object({ alert_rule_test: Type.Array(Expectation) })),
});

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
  it.each(['fire', 'be quiet'])('has a case in which it must %s', async (expected) => {
    const files = await Promise.all(CASE_FILES.map((file) => Bun.file(file).text()));
    const tests = files.flatMap((file) => Value.Parse(Cases, YAML.parse(file)).tests);
    const tested = tests
      .flatMap(({ alert_rule_test }) => alert_rule_test)
      .filter(({ exp_alerts }) => exp_alerts.length > 0 === (expected === 'fire'))
      .map(({ alertname }) => alertname);
    expect(new Set(tested)).toEqual(new Set((await readAlerts()).map(({ alert }) => alert)));
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
