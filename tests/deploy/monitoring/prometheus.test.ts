import { afterAll, beforeAll, expect, it, setDefaultTimeout } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { eventually } from '../../support/eventually.ts';
import { PROMETHEUS, type Prometheus, startPrometheus } from '../../support/prometheus.ts';
import { REDIS_SERVER } from '../../support/redis.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { ALERTS_FILE, groupingLabelsOf, readAlerts, selectorsOf } from './alerts.ts';
import { chartsOf, readDashboard } from './dashboard.ts';
import { BLACKBOX_EXPORTER, type ProbedAddresses, startProbedAddresses } from './probed-addresses.ts';
import { startWatchedGateways, type WatchedGateways } from './scraped-gateways.ts';
import { everythingOnce } from './traffic.ts';

const INTERVAL_MS = 250;
/** Longer than a round of all requests takes on a busy machine. */
const RATE_INTERVAL = '15s';
const PATIENCE_MS = 50_000;
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

const REQUIREMENTS = [PROMETHEUS, BLACKBOX_EXPORTER, REDIS_SERVER, program('openssl')];

describeWith(REQUIREMENTS, 'a Prometheus that watches two gateways', () => {
  const stack = new AsyncDisposableStack();
  let gateways: WatchedGateways;
  let probed: ProbedAddresses;
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
    probed = stack.use(await startProbedAddresses());
    prometheus = stack.use(
      await startPrometheus({
        targets: gateways.targets,
        probes: [probed.expiring, probed.silent],
        exporter: probed.exporter,
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

  it('fires for a certificate that expires, and for an address that does not respond', async () => {
    const job = 'music-gateway-probes';
    const expires = { alertname: 'MusicGatewayCertificateExpires', job, severity: 'warning' };
    const fails = { alertname: 'MusicGatewayProbeFails', job, severity: 'critical' };
    const firing = [
      { ...expires, instance: probed.expiring },
      { ...fails, instance: probed.silent },
    ];
    await expectNoneLeft(() => quiet(firing));
  });

  it('fires when Redis stalls', async () => {
    const [instance] = gateways.targets;
    gateways.redis.stall();
    await expectNoneLeft(() =>
      quiet([{ alertname: 'MusicGatewayRedisAway', severity: 'warning', instance }]),
    );
    gateways.redis.resume();
  });

  it('fires when requests are refused, a token is too large, spans are dropped, and a gateway is killed', async () => {
    const job = 'music-gateway';
    const refusing = { alertname: 'MusicGatewayRefusesRequests', job, severity: 'critical' };
    const tooLarge = { alertname: 'MusicGatewayTokensTooLarge', job, severity: 'warning' };
    const [, instance] = gateways.targets;
    const dropping = { alertname: 'MusicGatewaySpansDropped', job, severity: 'warning', instance };
    await expectNoneLeft(() => quiet([refusing, tooLarge, dropping]));
    const down = { alertname: 'MusicGatewayDown', job, severity: 'critical', instance };
    // On a busy machine a scrape may take too long, and then the alert fires for a moment.
    const isQuiet = async () => (await quiet([down])).length === 1;
    await eventually(isQuiet, 'the alert to be quiet while the gateway runs', PATIENCE_MS);
    await endTraffic();
    gateways.small.kill('SIGKILL');
    await expectNoneLeft(() => quiet([down]));
  });
});
