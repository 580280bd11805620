/** Finds what a table lacks or has wrong: settings, packages, commands, routes, headers, log fields, metrics, alerts, costs. */

import { dependencies, devDependencies, scripts } from '../../package.json';
import { Admission } from '../../src/gateway/admission/admission.ts';
import { LADDER, type Rung } from '../../src/gateway/admission/ladder.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { RELAYED_HEADERS } from '../../src/gateway/http/forwarded-headers.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import { settingNames } from '../../src/gateway/settings/settings.ts';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { boundsOf, COSTS, COUNTED } from '../load/request-costs.ts';
import { readDocument, section } from '../support/documents.ts';
import { recordLog } from '../support/recorded-log.ts';
import { testSettings } from '../support/world.ts';

const SETTINGS = testSettings();
const BENCH = 'tests/bench/results/table.md';
const LEVELS = ['debug', 'info', 'warn', 'error'];

export async function tableProblems(): Promise<string[]> {
  const read = async (path: string, title = '') => {
    const document = await readDocument(path);
    return title ? section(document, title) : document.text;
  };
  const { routes } = createGateway({ logger: recordLog().logger, settings: SETTINGS });
  const settings = settingNames();
  const packages = Object.keys({ ...dependencies, ...devDependencies });
  const monitoring = 'deploy/monitoring/README.md';
  const logged = namesInTables(await read(monitoring, '## The log')).filter((name) => !LEVELS.includes(name));
  const measured = namesInTables(await read(monitoring, '## Metrics')).filter((name) => /^music_/.test(name));
  const explained = namesInTables(await read('CONTRIBUTING.md', '## Dependencies, and why each'));
  const example = matches(await read('.env.example'), /^(?:# )?([A-Z_]+)=/gm);
  const runbook = matches(await read('deploy/monitoring/runbook.md', '## Alerts'), /^### (.+)$/gm);
  const alerts = matches(await read('deploy/monitoring/alerts.yml'), /^ *- alert: (\S+)$/gm);
  const commands = Object.keys(scripts).map((name) => `\`bun run ${name}\``);
  const headers = (await read('src/README.md', '### Headers')).toLowerCase();
  const paths = routes.map(({ path }) => path.replace(/\*$/, ''));
  return [
    ...differences('deploy/settings.md', namesInTables(await read('deploy/settings.md')), settings),
    ...differences('.env.example', example, settings),
    ...differences('the dependencies', explained, packages),
    ...lacks('the commands', await read('CONTRIBUTING.md', '## Set up'), commands),
    ...lacks('the routes', await read('src/README.md', '## Routes'), paths),
    ...lacks(
      'the headers',
      headers,
      Array.from(RELAYED_HEADERS, (name) => `\`${name}\``),
    ),
    ...differences('the runbook', runbook, alerts),
    ...differences('the table of the log', logged, logFields()),
    ...differences('the table of the metrics', measured, metricNames()),
    ...lacks('the ladder', shares(await read('src/gateway/admission/README.md')), ladderRows()),
    ...staleCosts(await read(BENCH, '## Counts of one request of this gateway')),
  ];
}

/** What is in backticks in the first column of the section's tables. */
function namesInTables(text: string): string[] {
  return matches(text, /^\| ([^|]+) \|/gm).flatMap((cell) => matches(cell, /`([^`]+)`/g));
}

function differences(what: string, found: readonly string[], needed: readonly string[]): string[] {
  if (needed.length < 3) return [`${what}: there is nothing to compare with`];
  return [
    ...needed.filter((name) => !found.includes(name)).map((name) => `${what}: ${name} is missing`),
    ...found.filter((name) => !needed.includes(name)).map((name) => `${what}: there is no ${name}`),
  ];
}

function lacks(what: string, text: string, needed: readonly string[]): string[] {
  const found = needed.filter((name) => text.includes(name));
  return differences(what, found, needed);
}

function matches(text: string, pattern: RegExp): string[] {
  return Array.from(text.matchAll(pattern), ([, name = '']) => name);
}

/** The table that says who is refused first, without its second column. */
function shares(text: string): string {
  return text.replace(/^(\| `\w+`) \| [^|]+/gm, '$1 ');
}

function ladderRows(): string[] {
  const percent = (share: number) => (Number.isFinite(share) ? `${(share * 100).toFixed(1)} %` : 'any');
  return Object.entries<Rung>(LADDER).map(([name, { share, chargedShare = share }]) => {
    return `| \`${name}\` | ${percent(share)} | ${percent(chargedShare)} |`;
  });
}

/** Those of every line, and those of a request. */
function logFields(): string[] {
  const record = new RequestRecord(new Request('http://gateway.test'));
  return ['level', 'time', 'msg', ...Object.keys(record.logFields())];
}

/** Such as `music_gateway_refreshes_total{outcome}`. */
function metricNames(): string[] {
  const metrics = new Metrics();
  metrics.droppedSpans();
  metrics.redisGauge();
  metrics.watch(new Admission(SETTINGS));
  const own = metrics.registry.getMetricsAsArray().filter(({ name }) => name.startsWith('music_gateway_'));
  return own.map((metric) => {
    const labels = 'labelNames' in metric && Array.isArray(metric.labelNames) ? metric.labelNames.join() : '';
    return labels ? `${metric.name}{${labels}}` : metric.name;
  });
}

/** The hot path's guard counts what a request costs; beyond its tolerance the benchmark's figures need a new run. */
function staleCosts(text: string): string[] {
  const rows = matches(text, /^\| (.*) \|$/gm).map((row) => row.split(' | '));
  return COSTS.flatMap(([name, , , cost]) => {
    const [, ...then] = rows.find(([title]) => title === name) ?? [];
    const stale = COUNTED.filter((count, index) => {
      const [least, most] = boundsOf(Number(then[index]), count);
      return !(least <= cost[count] && cost[count] <= most);
    });
    return stale.map((count) => `${BENCH} needs a new run: ${name} has ${cost[count]} ${count} today`);
  });
}
