/** Finds settings, packages, commands, routes, log fields, metrics and alerts that a table lacks, or has in excess. */

import { dependencies, devDependencies, scripts } from '../../package.json';
import { Admission } from '../../src/gateway/admission/admission.ts';
import { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { OpenExchanges } from '../../src/gateway/exchange/open-exchanges.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { settingNames } from '../../src/gateway/settings/settings.ts';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { Telemetry } from '../../src/gateway/telemetry/telemetry.ts';
import { isStale, read as readMutants } from '../mutants/list.ts';
import { ROOT, readDocument, section } from '../support/documents.ts';
import { recordLog } from '../support/recorded-log.ts';
import { testSettings } from '../support/world.ts';

const SETTINGS = testSettings({ UPSTREAM_URL: 'http://upstream.test', IDP_URL: 'http://idp.test' });
const LEVELS = ['debug', 'info', 'warn', 'error'];

export async function tableProblems(): Promise<string[]> {
  const settings = await readDocument('deploy/settings.md');
  const contributing = await readDocument('CONTRIBUTING.md');
  const behaviour = await readDocument('src/README.md');
  const monitoring = await readDocument('deploy/monitoring/README.md');
  const runbook = await readDocument('deploy/monitoring/runbook.md');
  const example = await Bun.file(`${ROOT}.env.example`).text();
  const alerts = await Bun.file(`${ROOT}deploy/monitoring/alerts.yml`).text();
  const { fields, metrics } = await observeEverything();
  const { routes } = createGateway({ logger: recordLog().logger, settings: SETTINGS });
  const packages = Object.keys({ ...dependencies, ...devDependencies });
  const explained = namesInTables(section(monitoring, '## The log'));
  const measured = namesInTables(section(monitoring, '## Metrics'));
  return [
    ...differences('deploy/settings.md', namesInTables(settings.text), settingNames()),
    ...differences('.env.example', matches(example, /^(?:# )?([A-Z_]+)=/gm), settingNames()),
    ...differences(
      'the dependencies',
      namesInTables(section(contributing, '## Dependencies, and why each')),
      packages,
    ),
    ...lacks(
      'the commands',
      section(contributing, '## Set up'),
      Object.keys(scripts).map((name) => `\`bun run ${name}\``),
    ),
    ...lacks(
      'the routes',
      section(behaviour, '## Routes'),
      routes.map(({ path }) => path.replace(/\*$/, '')),
    ),
    ...differences(
      'the runbook',
      matches(section(runbook, '## Alerts'), /^### (.+)$/gm),
      matches(alerts, /^ *- alert: (\S+)$/gm),
    ),
    ...differences(
      'the table of the log',
      explained.filter((name) => !LEVELS.includes(name)),
      fields,
    ),
    ...differences(
      'the table of the metrics',
      measured.filter((name) => name.startsWith('music_')),
      metrics,
    ),
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
  return differences(
    what,
    needed.filter((name) => text.includes(name)),
    needed,
  );
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

/** A change of the line must also change its mutant, which would not be tried any more. */
async function mutantProblems(): Promise<string[]> {
  const mutants = await readMutants();
  const stale = await Promise.all(mutants.map(isStale));
  return mutants
    .filter((_, index) => stale[index])
    .map(
      ({ file, before }) =>
        `tests/mutants/mutants.tsv has a line that is gone from ${file}: ${before.trim()}`,
    );
}
