/** The dashboard as its file has it. */

import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { MONITORING } from './alerts.ts';

const Datasource = Type.Object({
  type: Type.Literal('prometheus'),
  uid: Type.String({ pattern: '^\\$\\{datasource\\}$' }),
});
const Place = Type.Object({ x: Type.Integer(), y: Type.Integer(), w: Type.Integer(), h: Type.Integer() });
const Row = Type.Object({
  id: Type.Integer(),
  type: Type.Literal('row'),
  title: Type.String({ minLength: 1 }),
  gridPos: Place,
});
const Chart = Type.Object({
  id: Type.Integer(),
  type: Type.Union([Type.Literal('stat'), Type.Literal('timeseries')]),
  title: Type.String({ minLength: 1 }),
  /** What to do about what one sees. */
  description: Type.String({ minLength: 1 }),
  datasource: Datasource,
  gridPos: Place,
  targets: Type.Array(
    Type.Object({
      refId: Type.String({ minLength: 1 }),
      expr: Type.String({ minLength: 1 }),
      legendFormat: Type.Optional(Type.String()),
    }),
    { minItems: 1 },
  ),
  fieldConfig: Type.Object({
    defaults: Type.Object({
      unit: Type.String({ minLength: 1 }),
      thresholds: Type.Optional(
        Type.Object({
          steps: Type.Array(
            Type.Object({ color: Type.String(), value: Type.Union([Type.Number(), Type.Null()]) }),
            { minItems: 1 },
          ),
        }),
      ),
      custom: Type.Optional(
        Type.Object({ scaleDistribution: Type.Optional(Type.Object({ type: Type.Literal('log') })) }),
      ),
    }),
    overrides: Type.Array(
      Type.Object({
        matcher: Type.Object({ id: Type.Literal('byName'), options: Type.String() }),
        properties: Type.Tuple([
          Type.Object({ id: Type.Literal('color'), value: Type.Object({ fixedColor: Type.String() }) }),
        ]),
      }),
    ),
  }),
  options: Type.Object({ textMode: Type.Optional(Type.String()) }),
});
const Dashboard = Type.Object({
  uid: Type.String({ minLength: 1 }),
  title: Type.String({ minLength: 1 }),
  tags: Type.Array(Type.String(), { minItems: 1 }),
  schemaVersion: Type.Integer(),
  templating: Type.Object({
    list: Type.Array(Type.Object({ name: Type.String(), type: Type.String(), query: Type.Unknown() })),
  }),
  annotations: Type.Object({
    list: Type.Array(Type.Object({ datasource: Datasource, expr: Type.String() })),
  }),
  panels: Type.Array(Type.Union([Row, Chart])),
});

export type Chart = Static<typeof Chart>;
export type Dashboard = Static<typeof Dashboard>;

export async function readDashboard(): Promise<Dashboard> {
  return Value.Parse(Dashboard, await Bun.file(`${MONITORING}dashboard.json`).json());
}

export function chartsOf({ panels }: Dashboard): Chart[] {
  return panels.filter((panel) => panel.type !== 'row');
}

/** The query as Grafana would send it for all instances. */
export function filled(query: string, rateInterval: string): string {
  return query.replaceAll('$instance', '.+').replaceAll('$__rate_interval', rateInterval);
}
