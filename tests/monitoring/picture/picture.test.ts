import { expect, it } from 'bun:test';
import { startPrometheus } from '../../support/prometheus.ts';
import { ALERTS_FILE, MONITORING } from '../alerts.ts';
import { readDashboard } from '../dashboard.ts';
import { startWatchedGateways } from '../scraped-gateways.ts';
import { drawDashboard } from './draw.ts';
import { EVENING_SECONDS, passEvening } from './evening.ts';

const MOST_BYTES = 200_000;
const IS_WANTED = Bun.env['UPDATE_SCREENSHOTS'] === '1';
if (!IS_WANTED) console.log('skipped: picture.test.ts takes minutes; UPDATE_SCREENSHOTS=1 draws the picture');

/** It takes minutes, so only where it is asked for; that a picture can be drawn, `prometheus.test.ts` makes sure. */
it.skipIf(!IS_WANTED)(
  'a picture of the dashboard is drawn from what a real Prometheus has seen of an evening',
  async () => {
    await using gateways = await startWatchedGateways();
    const ruleFiles = [ALERTS_FILE];
    await using prometheus = await startPrometheus({
      targets: gateways.targets,
      ruleFiles,
      intervalMs: 1000,
    });
    const start = Date.now() / 1000;
    await passEvening(gateways);
    const period = { start, end: start + EVENING_SECONDS, stepSeconds: 2, rateInterval: '20s' };
    const picture = await drawDashboard(await readDashboard(), prometheus, period);
    expect(picture.length).toBeLessThan(MOST_BYTES);
    await Bun.write(`${MONITORING}dashboard.svg`, picture);
  },
  (EVENING_SECONDS + 60) * 1000,
);
