/** Starts the gateway: settings, listen, signals. The only file with side effects. */

import { createGateway } from './gateway.ts';
import { limitWarnings, openFilesLimit } from './limits.ts';
import { parseSettings } from './settings.ts';

/** `bun run` passes on a signal that a terminal or systemd has sent to this process too: that is not a second one. */
const SAME_SIGNAL_MS = 1000;

function main(): void {
  const outcome = parseSettings(process.env);
  for (const warning of outcome.warnings) console.warn(`warning: ${warning}`);
  if (!outcome.ok) {
    for (const problem of outcome.problems) console.error(`error: ${problem}`);
    process.exit(1);
  }
  const { settings } = outcome;
  for (const warning of limitWarnings(settings.maxHeldRequests, process.env, openFilesLimit())) {
    console.warn(`warning: ${warning}`);
  }
  const gateway = createGateway({ settings });
  try {
    gateway.listen({ port: settings.port, hostname: settings.host });
  } catch (error) {
    console.error(`error: ${listenProblem(error, settings.port, settings.host)}`);
    process.exit(1);
  }
  const origins = [...settings.allowedOrigins].join(', ');
  console.log(`${settings.serviceName} listens on ${gateway.server?.url.origin} for ${origins}`);

  let stoppingSince: number | undefined;
  const stop = async () => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince > SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    stoppingSince = performance.now();
    // A refresh whose client has gone does not hold the server up, but must not be cut off either.
    const stopped = gateway.stop().then(() => gateway.settled());
    await Promise.race([stopped, Bun.sleep(Math.max(...Object.values(settings.timeouts)))]);
    process.exit(0);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

function listenProblem(error: unknown, port: number, host: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : error;
  return code === 'EADDRINUSE'
    ? `port ${port} is taken (PORT)`
    : `cannot listen on ${host}:${port} (${code})`;
}

main();
