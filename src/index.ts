/** Starts the gateway: reads the settings, listens and handles signals. Nothing else in production acts on import. */

import { totalmem } from 'node:os';
import packageJson from '../package.json' with { type: 'json' };
import { Admission } from './gateway/admission/admission.ts';
import { openChargedMemory } from './gateway/admission/charged-memory.ts';
import { createGateway } from './gateway/gateway.ts';
import { listenOrExplain } from './gateway/http/listen.ts';
import { loadSettings, type Settings } from './gateway/settings/settings.ts';
import { openLog } from './gateway/telemetry/logger.ts';

/** A signal may arrive twice, because `bun run` passes it on: within this time it counts once. */
const SAME_SIGNAL_MS = 1000;
const SHARED_COOKIES =
  'cookies ignore ports: another gateway on localhost signs the users of this one out. ' +
  'Open one of them, and its page, at 127.0.0.1 or at a name below .localhost';

async function main(): Promise<void> {
  const outcome = await loadSettings(process.env);
  if (!outcome.ok) {
    for (const warning of outcome.warnings) console.error(`warning: ${warning}`);
    for (const problem of outcome.problems) console.error(`error: ${problem}`);
    process.exit(1);
  }
  const { settings } = outcome;
  const { port, host, metricsPort, metricsHost, traceShare, allowedOrigins, serviceName, timeouts } =
    settings;
  const metrics =
    metricsPort === undefined ? undefined : new (await import('./gateway/telemetry/metrics.ts')).Metrics();
  const { logger, close } = openLog(settings, () => metrics?.logFailed());
  const exit = async (status: number) => {
    await close();
    process.exit(status);
  };
  for (const warning of outcome.warnings) logger.warn(warning);
  if (outcome.warnings.length) logger.warn('bun run check-config tells more');
  const traces =
    traceShare === undefined
      ? undefined
      : new (await import('./gateway/telemetry/traces.ts')).Traces(traceShare, serviceName, logger, metrics);
  const admission = new Admission(settings, openChargedMemory(totalmem()));
  const gateway = createGateway({ settings, logger, metrics, traces, admission });
  const problem =
    (await listenOrExplain('METRICS_', metricsPort, metricsHost, (address) => metrics?.serve(address))) ??
    (await listenOrExplain('', port, host, (address) => gateway.listen(address)));
  if (problem) {
    console.error(`error: ${problem}`);
    return exit(1);
  }
  const { server, exchanges } = gateway;
  const isOnLocalhost = [...allowedOrigins].some((origin) => new URL(origin).hostname === 'localhost');
  if (isOnLocalhost) logger.info(SHARED_COOKIES);
  logger.info(`${serviceName} listens on ${server?.url.origin} for ${summaryOf(settings)}`);

  let stoppingSince: number | undefined;
  const stop = async (signal: NodeJS.Signals) => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince > SAME_SIGNAL_MS) await exit(1);
      return;
    }
    stoppingSince = performance.now();
    logger.info(`${signal}: no more connections; ${exchanges.size} requests are in flight`);
    const finished = gateway.stop().then(() => exchanges.settled());
    await Promise.race([finished, Bun.sleep(Math.max(...Object.values(timeouts)))]);
    const cut = exchanges.size;
    if (cut) logger.warn(`stopped; ${cut} requests took too long and are cut off`);
    else logger.info('stopped; every request is finished');
    admission.watch.endAll();
    exchanges.endAll();
    // The connections are reset at the end of this turn of the event loop.
    await Bun.sleep(0);
    await traces?.close();
    await exit(0);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

/** What an operator asks first about an instance. */
function summaryOf({ allowedOrigins, production, cookies, memoryLimitBytes, redisUrl }: Settings): string {
  const facts = [
    `version ${packageJson.version}`,
    production ? 'production' : 'not production',
    cookies.keys.length ? 'cookies sealed' : 'cookies not sealed',
    `${Math.round(memoryLimitBytes / 1024 ** 2)} MiB of memory`,
    redisUrl ? 'with Redis' : 'without Redis',
  ];
  return `${[...allowedOrigins].join(', ')}: ${facts.join(', ')}`;
}

await main();
