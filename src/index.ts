/** Starts the gateway: settings, listen, signals. The only file with side effects. */

import { createGateway } from './gateway.ts';
import { limitWarnings, openFilesLimit } from './limits.ts';
import { parseSettings, type Settings } from './settings.ts';
import { openLog } from './telemetry/logger.ts';

/** `bun run` passes on a signal that a terminal or systemd has sent to this process too: that is not a second one. */
const SAME_SIGNAL_MS = 1000;

async function main(): Promise<void> {
  const outcome = parseSettings(process.env);
  if (!outcome.ok) {
    for (const warning of outcome.warnings) console.error(`warning: ${warning}`);
    for (const problem of outcome.problems) console.error(`error: ${problem}`);
    process.exit(1);
  }
  const { settings } = outcome;
  const logger = await openLog(settings);
  for (const warning of outcome.warnings) logger.warn(warning);
  for (const warning of limitWarnings(settings.maxHeldRequests, process.env, openFilesLimit())) {
    logger.warn(warning);
  }
  const metrics = await openMetrics(settings);
  const gateway = createGateway({ settings, logger, metrics });
  listenOrExit('PORT', settings, settings.port, (address) => gateway.listen(address));
  const { server } = gateway;
  const origins = [...settings.allowedOrigins].join(', ');
  logger.info(`${settings.serviceName} listens on ${server?.url.origin} for ${origins}`);

  let stoppingSince: number | undefined;
  const stop = async (signal: NodeJS.Signals) => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince > SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    stoppingSince = performance.now();
    logger.info(`${signal}: no more connections; ${server?.pendingRequests} requests are under way`);
    // A refresh whose client has gone does not hold the server up, but must not be cut off either.
    const finished = gateway.stop().then(() => gateway.settled());
    await Promise.race([finished, Bun.sleep(Math.max(...Object.values(settings.timeouts)))]);
    const cut = server?.pendingRequests ?? 0;
    if (cut) logger.warn(`stopped; ${cut} requests took too long and are cut off`);
    else logger.info('stopped; every request is finished');
    process.exit(0);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

/** Loaded only where it is asked for: it takes 24 ms of the start. */
async function openMetrics(settings: Settings) {
  const { metricsPort, maxHeldRequests } = settings;
  if (metricsPort === undefined) return undefined;
  const { Metrics } = await import('./telemetry/metrics.ts');
  const { serveMetrics } = await import('./telemetry/metrics-server.ts');
  const metrics = new Metrics(maxHeldRequests);
  listenOrExit('METRICS_PORT', settings, metricsPort, (address) => serveMetrics(metrics.registry, address));
  return metrics;
}

function listenOrExit(
  setting: string,
  { host }: Settings,
  port: number,
  listen: (address: { port: number; hostname: string }) => void,
): void {
  try {
    listen({ port, hostname: host });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    const problem =
      code === 'EADDRINUSE' ? `port ${port} is taken` : `cannot listen on ${host}:${port} (${code})`;
    console.error(`error: ${problem} (${setting})`);
    process.exit(1);
  }
}

await main();
