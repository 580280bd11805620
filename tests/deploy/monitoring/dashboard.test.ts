import { describe, expect, it } from 'bun:test';
import { chartsOf, readDashboard } from './dashboard.ts';

const COLUMNS = 24;

const dashboard = await readDashboard();

describe('the dashboard', () => {
  it('has panels with distinct ids, and distinct query ids in each', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { title, targets } of chartsOf(dashboard)) {
      expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length);
    }
  });

  it('covers its width in every row, and no panel covers another', () => {
    const covered = new Map<string, string>();
    for (const { title, gridPos } of dashboard.panels) {
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(covered.get(`${x},${y}`), title).toBeUndefined();
          covered.set(`${x},${y}`, title);
        }
      }
    }
    const height = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
    expect(covered.size).toBe(COLUMNS * height);
  });

  it('uses no variables but those that it declares and those of Grafana', () => {
    const declared = dashboard.templating.list.map(({ name }) => `$${name}`);
    const queries = [...chartsOf(dashboard).flatMap(({ targets }) => targets), ...dashboard.annotations.list];
    const used = queries.flatMap(({ expr }) => expr.match(/\$\w+/g) ?? []);
    expect([...new Set(used)].sort()).toEqual(['$__rate_interval', '$instance']);
    expect(declared).toEqual(['$datasource', '$instance']);
  });
});
