import { afterAll, beforeAll, expect, it } from 'bun:test';
import { readdirSync } from 'node:fs';
import { eventually } from '../../support/eventually.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { MONITORING, readAlerts, readDashboard } from './alerts-and-dashboard.ts';
import { PROMETHEUS, type Prometheus, startPrometheus } from './prometheus.ts';
import { startWatchedGateway } from './watched-gateway.ts';

const CASES = new URL('alerts/', import.meta.url).pathname;
const CASE_FILES = readdirSync(CASES).map((name) => CASES + name);
const LINT = ['--lint=all', '--lint-fatal'];
const PATIENCE_MS = 50_000;
const SELECTOR = /\b(?:up|(?:music_gateway|process|nodejs|probe)_\w+)(?:\{[^}]*\}|(?=[[\s)]|$))/g;
const GROUPING = /\b(?:by|without) \(([^)]*)\)/g;

const alerts = await readAlerts();
const { panels, charts, annotations } = await readDashboard();
const targets = charts.flatMap(({ targets }) => targets);

describeWith([program('promtool')], 'promtool', () => {
  it.each([
    ['has no objection to the alerts', ['check', 'rules', ...LINT, `${MONITORING}alerts.yml`]],
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
  for (const { alert } of alerts) {
    expect(cases).toMatch(new RegExp(`alertname: ${alert}, .*exp_alerts: \\[\\] }`));
    expect(cases).toMatch(new RegExp(`alertname: ${alert}\n.*\n +exp_alerts:\n +- exp_labels`));
  }
});

it('the dashboard has panels with distinct ids, and distinct query ids in each', () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  for (const { title, targets } of charts)
    expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length);
});

/** Waits until each of them is found, and fails with what is not. */
async function expectEach(wanted: readonly string[], isFound: (each: string) => Promise<boolean>) {
  let missing = wanted;
  const areFound = async () => {
    const found = await Promise.all(wanted.map((each) => isFound(each).catch(() => false)));
    missing = wanted.filter((_, index) => !found[index]);
    return missing.length === 0;
  };
  await eventually(areFound, 'each to be found', PATIENCE_MS).catch(() => {});
  expect(missing).toEqual([]);
}

/** The query as Grafana sends it for all instances, over longer than a round of all requests takes. */
function filled({ expr }: { readonly expr: string }): string {
  return expr.replaceAll('$instance', '.+').replaceAll('$__rate_interval', '15s');
}

function selectorsOf(query: string): string[] {
  return query.match(SELECTOR) ?? [];
}

/** Stands in for prometheus-blackbox-exporter, which asks for the addresses of production. */
function probe({ url }: Request): Response {
  const { pathname, searchParams } = new URL(url);
  if (pathname !== '/probe' || searchParams.get('module') !== 'http_2xx')
    return new Response('', { status: 404 });
  const isGateway = searchParams.get('target') === 'https://api.studio.example/api/health';
  const text = `probe_success ${Number(isGateway)}\nprobe_ssl_earliest_cert_expiry 4e9\n`;
  return new Response(text, { headers: { 'content-type': 'text/plain; version=0.0.4' } });
}

describeWith([PROMETHEUS], 'a Prometheus that watches a gateway', () => {
  const stack = new AsyncDisposableStack();
  let prometheus: Prometheus;

  beforeAll(async () => {
    const { metrics } = stack.use(await startWatchedGateway());
    const exporter = stack.use(Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: probe }));
    prometheus = stack.use(await startPrometheus(metrics, `127.0.0.1:${exporter.port}`));
  }, 60_000);

  afterAll(() => stack.disposeAsync());

  it('evaluates every alert', async () => {
    const names = alerts.map(({ alert }) => alert);
    await expectEach(names, async (alert) =>
      (await prometheus.rules()).some(({ name, health }) => name === alert && health === 'ok'),
    );
  });

  it('has seen every series that an alert or a panel asks for, with the labels that it groups by', async () => {
    const queries = [...alerts, ...targets, ...annotations].map(filled);
    const selectors = [...new Set(queries.flatMap(selectorsOf))];
    expect(selectors.length).toBeGreaterThan(30);
    await expectEach(selectors, async (each) => (await prometheus.series(each)).length > 0);
    for (const query of queries) {
      const series = (await Promise.all(selectorsOf(query).map((each) => prometheus.series(each)))).flat();
      const labels = series.flatMap((each) => Object.keys(each));
      const grouping = [...query.matchAll(GROUPING)].flatMap(([, names = '']) => names.split(', '));
      expect(labels, query).toEqual(expect.arrayContaining(grouping));
    }
  });

  it('has figures for every panel', async () => {
    await expectEach(targets.map(filled), async (query) =>
      (await prometheus.query(query)).some(({ value: [, figure] }) => figure !== 'NaN'),
    );
  });

  it('names the address that responds to a probe', async () => {
    await expectEach(['https://api.studio.example/api/health'], async (instance) => {
      const [first] = await prometheus.query('probe_success == 1');
      return first?.metric['instance'] === instance;
    });
  });
});
