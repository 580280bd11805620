/** The alerts and the dashboard of `deploy/monitoring`, as their files have them. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { YAML } from 'bun';

export const MONITORING = new URL('../../../deploy/monitoring/', import.meta.url).pathname;

const Alert = Type.Object({ alert: Type.String(), expr: Type.String() });
const Rules = Type.Object({ groups: Type.Array(Type.Object({ rules: Type.Array(Alert) })) });

export async function readAlerts() {
  const { groups } = Value.Parse(Rules, YAML.parse(await Bun.file(`${MONITORING}alerts.yml`).text()));
  return groups.flatMap(({ rules }) => rules);
}

const Text = Type.String({ minLength: 1 });
const Datasource = Type.Object({
  type: Type.Literal('prometheus'),
  uid: Type.String({ pattern: '^\\$\\{datasource\\}$' }),
});
const Row = Type.Object({ id: Type.Integer(), title: Text, type: Type.Literal('row') });
const Chart = Type.Object({
  id: Type.Integer(),
  title: Text,
  type: Type.Union([Type.Literal('stat'), Type.Literal('timeseries')]),
  /** What to do about what one sees. */
  description: Text,
  datasource: Datasource,
  targets: Type.Array(Type.Object({ refId: Text, expr: Text }), { minItems: 1 }),
  fieldConfig: Type.Object({ defaults: Type.Object({ unit: Text }) }),
});
const variable = (name: string) => Type.Object({ name: Type.Literal(name) });
const Dashboard = Type.Object({
  templating: Type.Object({ list: Type.Tuple([variable('datasource'), variable('instance')]) }),
  annotations: Type.Object({ list: Type.Array(Type.Object({ datasource: Datasource, expr: Text })) }),
  panels: Type.Array(Type.Union([Row, Chart])),
});

export async function readDashboard() {
  const json: unknown = await Bun.file(`${MONITORING}dashboard.json`).json();
  const { panels, annotations } = Value.Parse(Dashboard, json);
  const charts = panels.filter((panel) => panel.type !== 'row');
  return { panels, charts, annotations: annotations.list };
}
