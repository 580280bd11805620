/** The alert rules as their file has them, and the series that a query asks for. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { YAML } from 'bun';

export const MONITORING = new URL('../../../deploy/monitoring/', import.meta.url).pathname;
export const ALERTS_FILE = `${MONITORING}alerts.yml`;

const Rules = Type.Object({
  groups: Type.Array(
    Type.Object({
      rules: Type.Array(
        Type.Object({
          alert: Type.String(),
          expr: Type.String(),
          labels: Type.Record(Type.String(), Type.String()),
          annotations: Type.Record(Type.String(), Type.String()),
        }),
      ),
    }),
  ),
});

export async function readAlerts() {
  const { groups } = Value.Parse(Rules, YAML.parse(await Bun.file(ALERTS_FILE).text()));
  return groups.flatMap(({ rules }) => rules);
}

const SELECTOR = /\b(?:up|(?:music_gateway|process|nodejs|probe)_\w+)(?:\{[^}]*\}|(?=[[\s)]|$))/g;
const GROUPING = /\b(?:by|without) \(([^)]*)\)/g;

/** What a query reads, such as `up{job="music-gateway"}`. */
export function selectorsOf(query: string): string[] {
  return [...new Set(query.match(SELECTOR))];
}

/** The labels that a query groups by. */
export function groupingLabelsOf(query: string): string[] {
  return [...query.matchAll(GROUPING)].flatMap(([, labels = '']) =>
    labels.split(',').map((label) => label.trim()),
  );
}
