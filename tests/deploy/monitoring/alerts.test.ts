import { describe, expect, it } from 'bun:test';
import { readdirSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { YAML } from 'bun';
import { describeWith, program } from '../../support/requirements.ts';
import { ALERTS_FILE, MONITORING, readAlerts } from './alerts.ts';

const CASES = new URL('alerts/', import.meta.url).pathname;
const CASE_FILES = readdirSync(CASES);

const Cases = Type.Object({
  tests: Type.Array(
    Type.Object({
      alert_rule_test: Type.Array(
        Type.Object({ alertname: Type.String(), exp_alerts: Type.Array(Type.Unknown()) }),
      ),
    }),
  ),
});

async function expectations() {
  const files = await Promise.all(
    CASE_FILES.map(async (file) => YAML.parse(await Bun.file(CASES + file).text())),
  );
  return files.flatMap((file) =>
    Value.Parse(Cases, file).tests.flatMap(({ alert_rule_test }) => alert_rule_test),
  );
}

/** What promtool objects to. */
function complaints(...options: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(['promtool', ...options]);
  return success ? '' : `${stdout}${stderr}`;
}

describeWith([program('promtool')], 'promtool', () => {
  it('finds nothing wrong with the rules, nor with the example configuration that loads them', () => {
    expect(complaints('check', 'rules', '--lint=all', '--lint-fatal', ALERTS_FILE)).toBe('');
    expect(complaints('check', 'config', '--lint=all', '--lint-fatal', `${MONITORING}prometheus.yml`)).toBe(
      '',
    );
  });

  it.each(CASE_FILES)('sees the alerts be quiet and fire as %s says', (file) => {
    expect(complaints('test', 'rules', CASES + file)).toBe('');
  });
});

describe('every alert', () => {
  it('is tested both where it must be quiet and where it must fire', async () => {
    const names = (await readAlerts()).map(({ alert }) => alert).sort();
    const all = await expectations();
    const namesOf = (fires: boolean) =>
      [
        ...new Set(
          all.filter(({ exp_alerts }) => exp_alerts.length > 0 === fires).map(({ alertname }) => alertname),
        ),
      ].sort();
    expect(namesOf(true)).toEqual(names);
    expect(namesOf(false)).toEqual(names);
  });

  it('says how urgent it is, what has happened, and where the runbook says what to do', async () => {
    for (const { alert, labels, annotations } of await readAlerts()) {
      expect(Object.keys(labels), alert).toEqual(['severity']);
      expect(labels['severity'], alert).toBeOneOf(['critical', 'warning']);
      expect(Object.keys(annotations), alert).toEqual(['summary', 'description', 'runbook']);
      expect(annotations['runbook']).toBe(`deploy/monitoring/runbook.md#${alert.toLowerCase()}`);
    }
  });
});
