import { expect, it } from 'bun:test';
import { readdirSync } from 'node:fs';
import dashboard from '../../../deploy/monitoring/dashboard.json';
import { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import type { RequestRecord } from '../../../src/gateway/record/request-record.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { createFolder } from '../../support/temporary-folder.ts';
import { testSettings } from '../../support/world.ts';

const MONITORING = new URL('../../../deploy/monitoring/', import.meta.url).pathname;
const CASES = new URL('alerts/', import.meta.url).pathname;
const CASE_FILES = readdirSync(CASES).map((name) => CASES + name);
const ALERTS_FILE = `${MONITORING}alerts.yml`;
const ALERTS_TEXT = await Bun.file(ALERTS_FILE).text();
const ALERTS = [...ALERTS_TEXT.matchAll(/^ +- alert: (\w+)$/gm)];
const LINT = ['--lint=all', '--lint-fatal'];
const PATIENCE_MS = 50_000;
const SELECTOR = /\b(?:up|(?:music_gateway|process|nodejs|probe)_\w+)(?:\{[^}]*\}|(?=[[\s)]|$))/g;
const GROUPING = /\b(?:by|without) \(([^)]*)\)/g;

type Labels = Readonly<Record<string, string>>;
type Sample = { readonly value: readonly [at: number, figure: string] };
type Group = { readonly rules: readonly { query: string; health: string }[] };

const { panels, annotations } = dashboard;
const charts = panels.flatMap((panel) => (panel.type === 'row' ? [] : [{ targets: [], ...panel }]));
const targets = charts.flatMap(({ targets }) => targets);

describeWith([program('promtool')], 'promtool', () => {
  it.each([
    ['has no objection to the alerts', ['check', 'rules', ...LINT, ALERTS_FILE]],
    ['has no objection to the example', ['check', 'config', ...LINT, `${MONITORING}prometheus.yml`]],
    // With the severity and every annotation.
    ['sees each alert be quiet and fire as its cases say', ['test', 'rules', ...CASE_FILES]],
  ])('%s', (_, options) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(['promtool', ...options]);
    expect(exitCode, `${stdout}${stderr}`).toBe(0);
  });
});

it('each alert has a case in which it must be quiet, and one in which it must fire', async () => {
  const cases = (await Promise.all(CASE_FILES.map((file) => Bun.file(file).text()))).join('\n');
  expect(ALERTS).toHaveLength(ALERTS_TEXT.match(/\balert:/g)?.length ?? expect.unreachable());
  for (const [, alert] of ALERTS) {
    expect(cases).toMatch(new RegExp(`alertname: ${alert}, .*exp_alerts: \\[\\] }`));
    expect(cases).toMatch(new RegExp(`alertname: ${alert}\n.*\n +exp_alerts:\n +- exp_labels`));
  }
});

it('the dashboard asks the chosen Prometheus, in panels and queries with distinct ids', () => {
  for (const { datasource } of [...charts, ...annotations.list])
    expect(datasource?.uid).toMatch(/^\$\{datasource\}$/);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  for (const { title, targets } of charts)
    expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length);
});

const SETTINGS = testSettings({ REDIS_URL: 'redis://127.0.0.1:1' });
/** Something to count for each alert and panel. That requests have these facts: integration tests. */
const REQUESTS: readonly [method: string, path: string, facts: Partial<RequestRecord>][] = [
  ['POST', '/api/auth/idp', {}],
  ['POST', '/api/auth/idp', { status: 400, reason: 'clientRefused' }],
  ['GET', '/api/auth/session', { status: 503, refresh: 'rejected', calls: [refresh(503)] }],
  ['GET', '/api/auth/session', { refresh: 'unreachable', calls: [refresh('http_response_timeout')] }],
  ['GET', '/api/upstream/v1/library', { bytes: 300_000, brokenBody: true }],
  ['GET', '/api/upstream/v1/library', { bytes: 300_000, clientGone: 'streaming' }],
];

function refresh(outcome: RequestRecord['calls'][number]['outcome']) {
  return { call: 'refresh', outcome, ms: 1 } as const;
}

/** Serves the metrics of a gateway that observes these requests again and again. */
function startWatchedGateway() {
  const metrics = new Metrics();
  metrics.droppedSpans();
  const { exchanges } = createGateway({ ...recordLog(), metrics, settings: SETTINGS });
  const traffic = setInterval(() => {
    for (const [method, path, { status = 200, ...facts }] of REQUESTS) {
      const exchange = new Exchange(new Request(`http://gateway.test${path}`, { method }), null);
      Object.assign(exchange.record, facts);
      exchanges.run(exchange, () => new Response(null, { status }));
    }
  }, 10);
  const server = metrics.serve({ port: 0, hostname: '127.0.0.1' });
  return {
    address: server.url.host,
    async [Symbol.asyncDispose]() {
      clearInterval(traffic);
      await server.stop(true);
    },
  };
}

/** The query as Grafana sends it for all instances, over longer than a round of all requests takes. */
function filled({ expr }: { readonly expr: string }): string {
  return expr.replaceAll('$instance', '.+').replaceAll('$__rate_interval', '15s');
}

/** Stands in for prometheus-blackbox-exporter. What it was asked becomes a label. */
function probe({ url }: Request): Response {
  const { pathname, search } = new URL(url);
  const asked = decodeURIComponent(pathname + search);
  const text = `probe_success{asked="${asked}"} 1\nprobe_ssl_earliest_cert_expiry 4e9\n`;
  return new Response(text, { headers: { 'content-type': 'text/plain; version=0.0.4' } });
}

/**
 * A real Prometheus with the example configuration. It is in a hurry, and scrapes the gateway as the only one of its machine.
 *
 * @param gateway host and port of its metrics
 * @param exporter host and port of the blackbox exporter
 */
async function startPrometheus(gateway: string, exporter: string) {
  await using stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(await createFolder());
  const address = `127.0.0.1:${await freePorts(1)}`;
  const configuration = (await Bun.file(`${MONITORING}prometheus.yml`).text())
    .replaceAll('15s', '250ms')
    .replace('- alerts.yml', `- ${MONITORING}alerts.yml`)
    .replace('["127.0.0.1:9464"]', `["${gateway}"]\n        labels: { machine: vm1 }`)
    .replace('127.0.0.1:9115', exporter);
  await Bun.write(`${folder}/prometheus.yml`, configuration);
  const options = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`];
  const command = ['prometheus', ...options, `--web.listen-address=${address}`];
  stack.use(Bun.spawn(command, { stdio: ['ignore', 'ignore', 'ignore'] }));
  const isReady = async () => (await fetch(`http://${address}/-/ready`).catch(() => undefined))?.ok;
  await eventually(isReady, 'Prometheus to be ready');

  const ask = async (path: string, parameters = {}) => {
    const query = new URLSearchParams(parameters);
    return Object(await (await fetch(`http://${address}/api/v1/${path}?${query}`)).json()).data;
  };
  const started = stack.move();
  return {
    query: async (query: string): Promise<readonly Sample[]> => (await ask('query', { query })).result,
    /** The labels of every series that a selector has found so far. */
    series: (selector: string): Promise<readonly Labels[]> => ask('series', { 'match[]': selector }),
    groups: async (): Promise<readonly Group[]> => (await ask('rules')).groups,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

describeWith([program('prometheus')], 'a Prometheus that watches a gateway', () => {
  it('evaluates every alert, and has each series, label and figure that alerts and panels ask for', async () => {
    await using gateway = startWatchedGateway();
    await using exporter = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: probe });
    await using prometheus = await startPrometheus(gateway.address, `127.0.0.1:${exporter.port}`);
    const alerts = async () =>
      (await prometheus.groups()).flatMap(({ rules }) => rules).filter(({ health }) => health === 'ok');
    const areEvaluated = async () => (await alerts()).length === ALERTS.length;
    await eventually(areEvaluated, 'every alert to be evaluated', PATIENCE_MS);

    const alertQueries = (await alerts()).map(({ query }) => query);
    const queries = [...alertQueries, ...[...targets, ...annotations.list].map(filled)];
    expect(queries.join('\n').match(SELECTOR)?.length).toBeGreaterThan(60);
    for (const query of queries) {
      const labels: string[] = [];
      for (const selector of query.match(SELECTOR) ?? []) {
        await eventually(async () => (await prometheus.series(selector)).length, selector, PATIENCE_MS);
        labels.push(...(await prometheus.series(selector)).flatMap(Object.keys));
      }
      const grouping = [...query.matchAll(GROUPING)].flatMap(([, names = '']) => names.split(', '));
      expect(labels, query).toEqual(expect.arrayContaining(grouping));
    }
    for (const query of targets.map(filled)) {
      const hasFigure = async () => (await prometheus.query(query)).some(({ value }) => value[1] !== 'NaN');
      await eventually(hasFigure, query, PATIENCE_MS);
    }
    const instance = 'https://api.studio.example/api/health';
    const asked = `/probe?module=http_2xx&target=${instance}`;
    expect(await prometheus.series('probe_success{server="gateway"}')).toMatchObject([{ instance, asked }]);
  }, 240_000);
});
