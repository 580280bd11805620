import { afterAll, beforeAll, expect, it, setDefaultTimeout } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { eventually } from '../../support/eventually.ts';
import { REDIS_SERVER } from '../../support/redis.ts';
import { describeWith } from '../../support/requirements.ts';
import { ALERTS_FILE, groupingLabelsOf, readAlerts, selectorsOf } from './alerts.ts';
import { chartsOf, readDashboard } from './dashboard.ts';
import { PROMETHEUS, type Prometheus, startPrometheus } from './prometheus.ts';
import { startWatchedGateways, type WatchedGateways } from './scraped-gateways.ts';
import { everythingOnce } from './traffic.ts';

const INTERVAL_MS = 250;
/** Longer than a round of all requests takes on a busy machine. */
const RATE_INTERVAL = '15s';
const PATIENCE_MS = 50_000;
const EXPIRING = 'https://expiring.test/';
const SILENT = 'https://silent.test/';
setDefaultTimeout(60_000);

const alerts = await readAlerts();
const dashboard = await readDashboard();
const charts = chartsOf(dashboard);

/** Waits until nothing is left, and fails with what is. */
async function expectNoneLeft<T>(read: () => Promise<T[]>): Promise<void> {
  let left: T[] = [];
  const isDone = async () => {
    left = await read();
    return left.length === 0;
  };
  await eventually(isDone, 'nothing to be left', PATIENCE_MS).catch(() => {});
  expect(left).toEqual([]);
}

async function without<T>(all: readonly T[], isThere: (each: T) => Promise<boolean>): Promise<T[]> {
  const found = await Promise.all(all.map(isThere));
  return all.filter((_, index) => !found[index]);
}

/** The query as Grafana sends it for all instances. */
function filled(query: string): string {
  return query.replaceAll('$instance', '.+').replaceAll('$__rate_interval', RATE_INTERVAL);
}

/** Stands in for prometheus-blackbox-exporter, which asks for the addresses of production. */
function respondToProbe({ url }: Request): Response {
  const { pathname, searchParams } = new URL(url);
  if (`${pathname}?${searchParams.get('module')}` !== '/probe?http_2xx')
    return new Response('', { status: 404 });
  const fiveDaysAhead = Date.now() / 1000 + 5 * 24 * 60 * 60;
  const responds = `probe_success 1\nprobe_ssl_earliest_cert_expiry ${fiveDaysAhead}\n`;
  const text = searchParams.get('target') === EXPIRING ? responds : 'probe_success 0\n';
  return new Response(text, { headers: { 'content-type': 'text/plain; version=0.0.4' } });
}

describeWith([PROMETHEUS, REDIS_SERVER], 'a Prometheus that watches two gateways', () => {
  const stack = new AsyncDisposableStack();
  let gateways: WatchedGateways;
  let prometheus: Prometheus;
  let endTraffic: () => Promise<void>;

  beforeAll(async () => {
    const folder = await mkdtemp(`${tmpdir()}/alerts-`);
    stack.defer(() => rm(folder, { recursive: true }));
    const impatient = `${folder}/impatient.yml`;
    const rules = await Bun.file(ALERTS_FILE).text();
    const atOnce = rules.replaceAll(/^( +for:) .*$/gm, '$1 0s').replaceAll(/\[\d+m\]/g, `[${RATE_INTERVAL}]`);
    await Bun.write(impatient, atOnce);
    gateways = stack.use(await startWatchedGateways());
    const exporter = stack.use(Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: respondToProbe }));
    prometheus = stack.use(
      await startPrometheus({
        targets: gateways.targets,
        probes: [EXPIRING, SILENT],
        exporter: `127.0.0.1:${exporter.port}`,
        ruleFiles: [ALERTS_FILE, impatient],
        intervalMs: INTERVAL_MS,
      }),
    );
    let isOver = false;
    const traffic = (async () => {
      while (!isOver) await everythingOnce(gateways);
    })();
    endTraffic = () => {
      isOver = true;
      return traffic;
    };
    stack.defer(endTraffic);
  });

  afterAll(() => stack.disposeAsync());

  it('loads and evaluates every rule', async () => {
    const rules = async () => (await prometheus.rules()).flatMap(({ rules }) => rules);
    await expectNoneLeft(async () => (await rules()).filter(({ health }) => health !== 'ok'));
    const names = alerts.map(({ alert }) => alert);
    expect((await rules()).map(({ name }) => name)).toEqual([...names, ...names]);
  });

  it('has seen every series that an alert or a panel asks for, with the labels that it groups by', async () => {
    const targets = charts.flatMap(({ targets }) => targets);
    const queries = [...alerts, ...targets, ...dashboard.annotations.list].map(({ expr }) => filled(expr));
    const selectors = [...new Set(queries.flatMap(selectorsOf))];
    expect(selectors.length).toBeGreaterThan(30);
    await expectNoneLeft(() =>
      without(selectors, async (selector) => (await prometheus.series(selector)).length > 0),
    );
    for (const query of queries) {
      const series = (await Promise.all(selectorsOf(query).map((each) => prometheus.series(each)))).flat();
      const labels = new Set(series.flatMap((each) => Object.keys(each)));
      const missing = groupingLabelsOf(query).filter((label) => !labels.has(label));
      expect(missing, query).toEqual([]);
    }
  });

  it('has figures for every panel', async () => {
    const targets = charts.flatMap(({ title, targets }) =>
      targets.map(({ refId, expr }) => ({ name: `${title}, ${refId}`, query: filled(expr) })),
    );
    await expectNoneLeft(() =>
      without(targets, async ({ query }) =>
        (await prometheus.query(query)).some(({ value: [, figure] }) => figure !== 'NaN'),
      ),
    );
  });

  /** Those of the alerts that do not fire. */
  const quiet = async (wanted: readonly Record<string, string>[]) => {
    const firing = (await prometheus.alerts()).filter(({ state }) => state === 'firing');
    return wanted.filter((each) => !firing.some(({ labels }) => Bun.deepMatch(each, labels)));
  };

  it('fires for what happens to the gateways and their addresses', async () => {
    const firing = (name: string, labels: Record<string, string>) => ({
      ...{ alertname: `MusicGateway${name}`, job: 'music-gateway', severity: 'warning' },
      ...labels,
    });
    const [main, small] = gateways.targets;
    const job = 'music-gateway-probes';
    gateways.redis.stall();
    await expectNoneLeft(() =>
      quiet([
        firing('RedisAway', { instance: main }),
        firing('TokensTooLarge', {}),
        firing('SpansDropped', { instance: small }),
        firing('RefusesRequests', { severity: 'critical' }),
        firing('CertificateExpires', { job, instance: EXPIRING }),
        firing('ProbeFails', { job, instance: SILENT, severity: 'critical' }),
      ]),
    );
    gateways.redis.resume();
    await endTraffic();
    gateways.small.kill('SIGKILL');
    await expectNoneLeft(() => quiet([firing('Down', { instance: small, severity: 'critical' })]));
  });
});
