/** The dashboard as an SVG picture, from what a real Prometheus answers: what Grafana would show, with nothing to click. */

import type { Prometheus } from '../../support/prometheus.ts';
import { type Chart, type Dashboard, filled } from '../dashboard.ts';
import { type Area, COLOURS, drawChart, type Range, round, type Series, text } from './chart.ts';
import { figure } from './figures.ts';

const COLUMN = 60;
const LINE = 30;
const GAP = 4;
const HEADER = 44;
const TITLE = 26;

const STYLE = `
text { font: 13px system-ui, sans-serif; fill: #24292f } .name { font-weight: 600 } .row { font-weight: 600; font-size: 15px }
.head { font-weight: 600; font-size: 19px } .minor { fill: #5f6975; font-size: 11px } .big { font-size: 30px; font-weight: 600 }
.end { text-anchor: end } .middle { text-anchor: middle } .page { fill: #f4f5f7 } .panel { fill: #fff; stroke: #dfe2e7 }
.grid { stroke: #e4e7eb } .line { fill: none; stroke-width: 1.6; stroke-linejoin: round }`;

export interface Period extends Range {
  readonly stepSeconds: number;
  /** For `$__rate_interval`, such as `10s`. */
  readonly rateInterval: string;
}

export async function drawDashboard(
  { title, panels }: Dashboard,
  prometheus: Prometheus,
  period: Period,
): Promise<string> {
  const width = 24 * COLUMN;
  const height = HEADER + LINE * Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h)) + GAP;
  const drawn = await Promise.all(
    panels.map(async (panel) => {
      const { x, y, w, h } = panel.gridPos;
      const left = x * COLUMN + GAP;
      const top = HEADER + y * LINE + GAP;
      if (panel.type === 'row') return text(left + 6, top + 18, panel.title, 'row');
      const [wide, high] = [w * COLUMN - 2 * GAP, h * LINE - 2 * GAP];
      const area = { x: left + 8, y: top + TITLE, width: wide - 16, height: high - TITLE };
      const series = await seriesOf(panel, prometheus, period);
      return [
        `<rect class="panel" x="${left}" y="${top}" width="${wide}" height="${high}" rx="3"/>`,
        text(left + 10, top + 19, panel.title, 'name'),
        panel.type === 'stat' ? drawStat(panel, series, area) : drawChart(panel, series, area, period),
      ].join('\n');
    }),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">`,
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${width}" height="${height}"/>`,
    text(10, 28, title, 'head'),
    ...drawn,
    '</svg>\n',
  ].join('\n');
}

async function seriesOf({ targets }: Chart, prometheus: Prometheus, period: Period): Promise<Series[]> {
  const answers = await Promise.all(
    targets.map(async ({ expr, legendFormat = '' }) => {
      const found = await prometheus.queryRange(filled(expr, period.rateInterval), period);
      return found.map(({ metric, values }) => ({
        name: legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? ''),
        points: values
          .map(([time, value]) => [time, Number(value)] as const)
          .filter(([, value]) => !Number.isNaN(value)),
      }));
    }),
  );
  return answers.flat().filter(({ points }) => points.length > 0);
}

function drawStat({ fieldConfig, options }: Chart, series: readonly Series[], area: Area): string {
  const { unit, thresholds } = fieldConfig.defaults;
  const [first] = series;
  const value = first?.points.at(-1)?.[1] ?? 0;
  const shown = options.textMode === 'name' ? series.map(({ name }) => name).join(', ') : figure(value, unit);
  const colour =
    thresholds?.steps.findLast((step) => step.value === null || step.value <= value)?.color ?? '';
  const fill = COLOURS[colour] ?? 'currentColor';
  const middle = round(area.x + area.width / 2);
  return `<text class="big middle" style="fill: ${fill}" x="${middle}" y="${round(area.y + area.height / 2 + 6)}">${Bun.escapeHTML(first ? shown : 'none')}</text>`;
}
