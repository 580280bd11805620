/** Makes the log: lines of JSON on standard output. */

import pino, { type DestinationStream, type LevelWithSilent, type Logger } from 'pino';
import type { Settings } from '../settings/settings.ts';

/** What waits for a reader of the log that stands still; beyond it lines are dropped, so that requests go on. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** How long the end of the process waits for the last lines to be read. */
const MAX_FLUSH_MS = 1000;

export interface Log {
  readonly logger: Logger;
  /** Writes what is left; nothing is written after it. */
  close(): Promise<void>;
}

export function openLog({ logLevel }: Settings): Log {
  // Written in the background: a slow reader of the log must hold up no request.
  const output = pino.destination({ dest: 1, sync: false, maxLength: MAX_WAITING_BYTES });
  // What a full disk takes away is the log, and nothing else: unheard, the error would end the process.
  output.on('error', () => {});
  return {
    logger: createLogger(logLevel, output),
    async close() {
      const written = new Promise((resolve) => output.once('close', resolve));
      output.end();
      await Promise.race([written, Bun.sleep(MAX_FLUSH_MS)]);
      // Its own hook at the exit would go on trying for as long as nobody reads.
      output.destroy();
    },
  };
}

/** What follows the level and the time is only what the caller names: no process id, no host name. */
export function createLogger(level: LevelWithSilent, destination: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return pino(options, destination);
}
