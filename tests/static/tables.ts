/** Finds settings, packages, commands, routes, log fields, metrics, alerts and costs that a table lacks, or has wrong. */

import { dependencies, devDependencies, scripts } from '../../package.json';
import { Admission } from '../../src/gateway/admission/admission.ts';
import { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { OpenExchanges } from '../../src/gateway/exchange/open-exchanges.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { settingNames } from '../../src/gateway/settings/settings.ts';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { Telemetry } from '../../src/gateway/telemetry/telemetry.ts';
import { boundsOf, COSTS, COUNTED } from '../load/request-costs.ts';
import { isStale, read as readMutants } from '../mutants/list.ts';
import { ROOT, readDocument, section } from '../support/documents.ts';
import { recordLog } from '../support/recorded-log.ts';
import { testSettings } from '../support/world.ts';

const SETTINGS = testSettings({ UPSTREAM_URL: 'http://upstream.test', IDP_URL: 'http://idp.test' });
const BENCH = 'tests/bench/results/table.md';
const LEVELS = ['debug', 'info', 'warn', 'error'];

export async function tableProblems(): Promise<string[]> {
  const read = async (path: string, title = '') => {
    const document = await readDocument(path);
    return title ? section(document, title) : document.text;
  };
  const { fields, metrics } = await observeEverything();
  const { routes } = createGateway({ logger: recordLog().logger, settings: SETTINGS });
  const settings = settingNames();
  const packages = Object.keys({ ...dependencies, ...devDependencies });
  const monitoring = 'deploy/monitoring/README.md';
  const logged = namesInTables(await read(monitoring, '## The log')).filter((name) => !LEVELS.includes(name));
  const measured = namesInTables(await read(monitoring, '## Metrics')).filter((name) => /^music_/.test(name));
  const explained = namesInTables(await read('CONTRIBUTING.md', '## Dependencies, and why each'));
  const example = matches(await Bun.file(`${ROOT}.env.example`).text(), /^(?:# )?([A-Z_]+)=/gm);
  const runbook = matches(await read('deploy/monitoring/runbook.md', '## Alerts'), /^### (.+)$/gm);
  const alerts = matches(
    await Bun.file(`${ROOT}deploy/monitoring/alerts.yml`).text(),
    /^ *- alert: (\S+)$/gm,
  );
  const commands = Object.keys(scripts).map((name) => `\`bun run ${name}\``);
  const paths = routes.map(({ path }) => path.replace(/\*$/, ''));
  return [
    ...differences('deploy/settings.md', namesInTables(await read('deploy/settings.md')), settings),
    ...differences('.env.example', example, settings),
    ...differences('the dependencies', explained, packages),
    ...lacks('the commands', await read('CONTRIBUTING.md', '## Set up'), commands),
    ...lacks('the routes', await read('src/README.md', '## Routes'), paths),
    ...differences('the runbook', runbook, alerts),
    ...differences('the table of the log', logged, fields),
    ...differences('the table of the metrics', measured, metrics),
    ...staleCosts(await read(BENCH, '## Counts of one request of this gateway')),
    ...(await mutantProblems()),
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

/** Observes a request with every fact that the log and the metrics can have, and returns the names of all. */
async function observeEverything() {
  const { logger, lines } = recordLog();
  const metrics = new Metrics();
  metrics.droppedSpans();
  metrics.watch(new Admission(SETTINGS));
  const routes = () => [{ method: 'GET', path: '/api/music/models' }];
  const telemetry = new Telemetry({ logger, metrics, routes, quietRoute: '/api/health' });
  telemetry.redisObserver().onUp();
  const exchange = new Exchange(new Request('http://localhost/api/music/models'), null);
  const { record } = exchange;
  record.calls.push({ call: 'models', outcome: 200, ms: 1 });
  Object.assign(record, {
    refresh: 'renewed',
    refreshTokenReused: 'presented',
    oauthError: 'invalid_grant',
    tokenProblem: 'no refresh_token',
    reason: 'upstreamTimeout',
    cause: 'TimeoutError',
    bytes: 1,
    slices: 2,
    clientGone: 'streaming',
    brokenBody: true,
    cutOff: 'no memory',
  } satisfies Partial<typeof record>);
  new OpenExchanges(telemetry).run(exchange, () => new Response());
  return { fields: Object.keys(lines[0] ?? {}), metrics: metricsIn(await metrics.registry.metrics()) };
}

/** Such as `music_gateway_refreshes_total{outcome}`, from the text that Prometheus reads. */
function metricsIn(scrape: string): string[] {
  const samples = scrape.matchAll(/^(music_gateway_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$/gm);
  const names = Array.from(samples, ([, name = '', labels = '']) => {
    const labelNames = matches(labels, /(\w+)="/g).filter((label) => label !== 'le');
    return labelNames.length ? `${name}{${labelNames.join(',')}}` : name;
  });
  return [...new Set(names)];
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

/** A change of the line must also change its mutant, which would not be tried any more. */
async function mutantProblems(): Promise<string[]> {
  const mutants = await readMutants();
  const stale = await Promise.all(mutants.map(isStale));
  const gone = mutants.filter((_, index) => stale[index]);
  return gone.map(({ file, before }) => `mutants.tsv has a line that is gone from ${file}: ${before.trim()}`);
}
