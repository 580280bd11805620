/** Draws the dashboard's picture from what a real Prometheus has seen of an evening: `bun run picture`, some minutes. */

import { startPrometheus } from '../../support/prometheus.ts';
import { ALERTS_FILE, MONITORING } from '../alerts.ts';
import { readDashboard } from '../dashboard.ts';
import { startWatchedGateways } from '../scraped-gateways.ts';
import { drawDashboard } from './draw.ts';
import { EVENING_SECONDS, passEvening } from './evening.ts';

const MOST_BYTES = 200_000;

await using gateways = await startWatchedGateways();
const { targets } = gateways;
await using prometheus = await startPrometheus({ targets, ruleFiles: [ALERTS_FILE], intervalMs: 1000 });
const start = Date.now() / 1000;
await passEvening(gateways);
const period = { start, end: start + EVENING_SECONDS, stepSeconds: 2, rateInterval: '20s' };
const picture = await drawDashboard(await readDashboard(), prometheus, period);
if (picture.length >= MOST_BYTES) throw new Error(`the picture has ${picture.length} bytes, too many`);
await Bun.write(`${MONITORING}dashboard.svg`, picture);
