import { afterAll, beforeAll, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { PROMETHEUS, type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { REDIS_SERVER } from '../support/redis.ts';
import { describeWith } from '../support/requirements.ts';
import { ALERTS_FILE, groupingLabelsOf, readAlerts, selectorsOf } from './alerts.ts';
import { chartsOf, filled, readDashboard } from './dashboard.ts';
import { drawDashboard } from './picture/draw.ts';
import { startWatchedGateways, type WatchedGateways } from './scraped-gateways.ts';
import { everythingOnce } from './traffic.ts';

const INTERVAL_MS = 250;
/** Longer than a round of everything takes on a busy machine. */
const RATE_INTERVAL = '15s';
const PATIENCE_MS = 50_000;
const TEST_TIMEOUT_MS = 60_000;

/** Reads until nothing is left, for as long as a test may take, and gives what is. */
async function lasting<T>(read: () => Promise<T[]>): Promise<T[]> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const left = await read();
    if (left.length === 0 || performance.now() > deadline) return left;
    await Bun.sleep(100);
  }
}

async function missing<T>(all: readonly T[], isThere: (each: T) => Promise<boolean>): Promise<T[]> {
  const found = await Promise.all(all.map(isThere));
  return all.filter((_, index) => !found[index]);
}

describeWith([PROMETHEUS, REDIS_SERVER], 'a Prometheus that watches two gateways', () => {
  const stack = new AsyncDisposableStack();
  let gateways: WatchedGateways;
  let prometheus: Prometheus;
  let traffic: { end(): Promise<void> };

  beforeAll(async () => {
    const folder = await mkdtemp(`${tmpdir()}/alerts-`);
    stack.defer(() => rm(folder, { recursive: true }));
    const hasty = `${folder}/hasty.yml`;
    await Bun.write(hasty, inAHurry(await Bun.file(ALERTS_FILE).text()));
    gateways = stack.use(await startWatchedGateways());
    const ruleFiles = [ALERTS_FILE, hasty];
    prometheus = stack.use(
      await startPrometheus({ targets: gateways.targets, ruleFiles, intervalMs: INTERVAL_MS }),
    );
    traffic = keepAsking(gateways);
    stack.defer(() => traffic.end());
  }, TEST_TIMEOUT_MS);

  afterAll(() => stack.disposeAsync());

  it(
    'loads and evaluates every rule',
    async () => {
      const alerts = (await readAlerts()).map(({ alert }) => alert);
      const rules = async () => (await prometheus.rules()).flatMap(({ rules }) => rules);
      expect(await lasting(async () => (await rules()).filter(({ health }) => health !== 'ok'))).toEqual([]);
      expect((await rules()).map(({ name }) => name)).toEqual([...alerts, ...alerts]);
    },
    TEST_TIMEOUT_MS,
  );

  it(
    'has seen every series that an alert or a panel asks for, with the labels that it groups by',
    async () => {
      const dashboard = await readDashboard();
      const queries = [
        ...(await readAlerts()),
        ...chartsOf(dashboard).flatMap(({ targets }) => targets),
        ...dashboard.annotations.list,
      ].map(({ expr }) => filled(expr, RATE_INTERVAL));
      const selectors = [...new Set(queries.flatMap(selectorsOf))];
      expect(selectors.length).toBeGreaterThan(30);
      const isSeen = async (selector: string) => (await prometheus.series(selector)).length > 0;
      expect(await lasting(() => missing(selectors, isSeen))).toEqual([]);
      for (const query of queries) {
        const series = (await Promise.all(selectorsOf(query).map((each) => prometheus.series(each)))).flat();
        const labels = new Set(series.flatMap((each) => Object.keys(each)));
        expect(
          groupingLabelsOf(query).filter((label) => !labels.has(label)),
          query,
        ).toEqual([]);
      }
    },
    TEST_TIMEOUT_MS,
  );

  it(
    'has something to show in every panel',
    async () => {
      const targets = chartsOf(await readDashboard()).flatMap(({ title, targets }) =>
        targets.map(({ refId, expr }) => ({
          name: `${title}, ${refId}`,
          query: filled(expr, RATE_INTERVAL),
        })),
      );
      const hasFigures = async ({ query }: { query: string }) =>
        (await prometheus.query(query)).some(({ value: [, figure] }) => figure !== 'NaN');
      expect(await lasting(() => missing(targets, hasFigures))).toEqual([]);
    },
    TEST_TIMEOUT_MS,
  );

  it('can be drawn as the dashboard shows it, with something in every panel', async () => {
    const end = Date.now() / 1000;
    const period = { start: end - 5, end, stepSeconds: 0.5, rateInterval: RATE_INTERVAL };
    const dashboard = await readDashboard();
    const picture = await drawDashboard(dashboard, prometheus, period);
    const panels = picture.split('<rect class="panel"').slice(1);
    const charts = chartsOf(dashboard);
    expect(panels.length).toBe(charts.length);
    for (const [index, { type, title }] of charts.entries()) {
      expect(panels[index]).toContain(Bun.escapeHTML(title));
      expect(panels[index]).toMatch(
        type === 'stat' ? /class="big[^>]*>[^<]*\d/ : /class="line"[^>]* d="M[\d. LM]+"/,
      );
    }
  });

  it(
    'fires when requests are refused, when a token is too large, and when a gateway is killed',
    async () => {
      const firing = async (wanted: readonly Record<string, string>[]) => {
        const labels = (await prometheus.alerts())
          .filter(({ state }) => state === 'firing')
          .map(({ labels }) => labels);
        return wanted.filter(
          (each) =>
            !labels.some((found) => Object.entries(each).every(([name, value]) => found[name] === value)),
        );
      };
      const job = 'music-gateway';
      const first = [
        { alertname: 'MusicGatewayRefusesRequests', job, severity: 'critical' },
        { alertname: 'MusicGatewayTokensTooLarge', job, severity: 'warning' },
      ];
      expect(await lasting(() => firing(first))).toEqual([]);
      const down = {
        alertname: 'MusicGatewayDown',
        job,
        severity: 'critical',
        instance: gateways.targets[1],
      };
      expect(await firing([down])).toEqual([down]);
      await traffic.end();
      gateways.small.kill('SIGKILL');
      expect(await lasting(() => firing([down]))).toEqual([]);
    },
    TEST_TIMEOUT_MS,
  );
});

function keepAsking(gateways: WatchedGateways): { end(): Promise<void> } {
  let isOver = false;
  const rounds = (async () => {
    while (!isOver) await everythingOnce(gateways);
  })();
  return {
    end() {
      isOver = true;
      return rounds;
    },
  };
}

/** The same rules, without patience. */
function inAHurry(rules: string): string {
  return rules.replaceAll(/^( +for:) .*$/gm, '$1 0s').replaceAll(/\[\d+m\]/g, `[${RATE_INTERVAL}]`);
}
