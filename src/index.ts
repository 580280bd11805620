/** Starts the gateway: reads the settings, listens and handles signals. Of the files that run in production, only this one has side effects on import. */

import type { Logger } from 'pino';
import { createGateway } from './gateway/gateway.ts';
import { listenOrExplain } from './gateway/http/listen.ts';
import { loadSettings, type Settings } from './gateway/settings/settings.ts';
import { openLog } from './gateway/telemetry/logger.ts';
import type { Metrics } from './gateway/telemetry/metrics.ts';

/** `bun run` passes on a signal that this process has received too. A repeat within this time is the same signal. */
const SAME_SIGNAL_MS = 1000;

async function main(): Promise<void> {
  const outcome = await loadSettings(process.env);
  if (!outcome.ok) {
    for (const warning of outcome.warnings) console.error(`warning: ${warning}`);
    for (const problem of outcome.problems) console.error(`error: ${problem}`);
    process.exit(1);
  }
  const { settings } = outcome;
  const metrics = await loadMetrics(settings);
  const { logger, close } = openLog(settings, () => metrics?.logFailed());
  const exit = async (status: number) => {
    await close();
    process.exit(status);
  };
  for (const warning of outcome.warnings) logger.warn(warning);
  const traces = await loadTraces(settings, logger, metrics);
  const gateway = createGateway({ settings, logger, metrics, traces });
  const problem =
    (await listenOrExplain('METRICS_', settings.metricsPort, settings.metricsHost, (address) =>
      metrics?.serve(address),
    )) ?? (await listenOrExplain('', settings.port, settings.host, (address) => gateway.listen(address)));
  if (problem) {
    console.error(`error: ${problem}`);
    return exit(1);
  }
  const { server } = gateway;
  const origins = [...settings.allowedOrigins].join(', ');
  logger.info(`${settings.serviceName} listens on ${server?.url.origin} for ${origins}`);

  let stoppingSince: number | undefined;
  const stop = async (signal: NodeJS.Signals) => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince > SAME_SIGNAL_MS) await exit(1);
      return;
    }
    stoppingSince = performance.now();
    logger.info(`${signal}: no more connections; ${server?.pendingRequests} requests are in flight`);
    // The server does not wait for a call whose client has disconnected; `settled()` does.
    const finished = gateway.stop().then(() => gateway.settled());
    await Promise.race([finished, Bun.sleep(Math.max(...Object.values(settings.timeouts)))]);
    const cut = server?.pendingRequests ?? 0;
    if (cut) logger.warn(`stopped; ${cut} requests took too long and are cut off`);
    else logger.info('stopped; every request is finished');
    await traces?.close();
    await exit(0);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

/** Loads the metrics only when a metrics port is set, because the import slows down the start. */
async function loadMetrics({ metricsPort }: Settings) {
  if (metricsPort === undefined) return undefined;
  const { Metrics } = await import('./gateway/telemetry/metrics.ts');
  return new Metrics();
}

/** Loads the traces only when they are exported, because they are more code than the gateway itself. */
async function loadTraces(settings: Settings, logger: Logger, metrics: Metrics | undefined) {
  const { traceShare, serviceName } = settings;
  if (traceShare === undefined) return undefined;
  const { Traces } = await import('./gateway/telemetry/traces.ts');
  return new Traces({ share: traceShare, serviceName, logger, onDropped: metrics?.droppedSpans() });
}

await main();
