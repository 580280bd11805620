/** The dashboard as its file has it. */

import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { MONITORING } from './alerts.ts';

const Text = Type.String({ minLength: 1 });
const Datasource = Type.Object({
  type: Type.Literal('prometheus'),
  uid: Type.String({ pattern: '^\\$\\{datasource\\}$' }),
});
const panel = {
  id: Type.Integer(),
  title: Text,
  gridPos: Type.Object({ x: Type.Integer(), y: Type.Integer(), w: Type.Integer(), h: Type.Integer() }),
};
const Row = Type.Object({ ...panel, type: Type.Literal('row') });
const Chart = Type.Object({
  ...panel,
  type: Type.Union([Type.Literal('stat'), Type.Literal('timeseries')]),
  /** What to do about what one sees. */
  description: Text,
  datasource: Datasource,
  targets: Type.Array(Type.Object({ refId: Text, expr: Text }), { minItems: 1 }),
  fieldConfig: Type.Object({ defaults: Type.Object({ unit: Text }) }),
});
const Dashboard = Type.Object({
  uid: Text,
  title: Text,
  templating: Type.Object({ list: Type.Array(Type.Object({ name: Type.String() })) }),
  annotations: Type.Object({
    list: Type.Array(Type.Object({ datasource: Datasource, expr: Type.String() })),
  }),
  panels: Type.Array(Type.Union([Row, Chart])),
});
type Dashboard = Static<typeof Dashboard>;

export async function readDashboard(): Promise<Dashboard> {
  return Value.Parse(Dashboard, await Bun.file(`${MONITORING}dashboard.json`).json());
}

export function chartsOf({ panels }: Dashboard) {
  return panels.filter((panel) => panel.type !== 'row');
}
