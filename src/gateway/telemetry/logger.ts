/** Makes the log: lines of JSON on standard output. */

import { writeSync } from 'node:fs';
import pino, { type DestinationStream, type LevelWithSilent, type Logger } from 'pino';
import type { Settings } from '../settings/settings.ts';
import { CollectedLines } from './collected-lines.ts';

/** Lines that wait for a stalled reader of the log. Beyond this limit they are dropped, so that requests continue. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** How long a process that crashes waits for a write in the background. */
const CRASH_WAIT_MS = 100;

/** How long the process waits at exit for the last lines to be read. */
const MAX_FLUSH_MS = 1000;

/** @param onFailure called for each write that fails, and for lines that are dropped */
export function openLog({ logLevel }: Pick<Settings, 'logLevel'>, onFailure = () => {}) {
  // Written in the background, so that a slow reader of the log delays no request.
  const output = pino.destination({ dest: 1, sync: false, maxLength: MAX_WAITING_BYTES });
  // Without this listener, a full disk would end the process.
  output.on('error', onFailure);
  output.on('drop', onFailure);
  let isClosed = false;
  // A request may end while the process does: its line is lost, but a write after the end would throw.
  const lines = new CollectedLines((text) => {
    if (!isClosed) output.write(text);
  });
  // The last lines before a crash are those that explain it.
  const flushAtCrash = () => {
    output.flushSync();
    // A write in the background would be lost with the process.
    Bun.sleepSync(CRASH_WAIT_MS);
    // A write through the destination would begin in the background, and not end in time.
    try {
      writeSync(1, lines.take());
    } catch {
      // A full disk or a stalled reader: the log cannot report this itself.
    }
  };
  process.on('exit', flushAtCrash);
  return {
    logger: createLogger(logLevel, lines),
    /** Flushes the log and closes it; nothing is logged afterwards. */
    async close(): Promise<void> {
      process.off('exit', flushAtCrash);
      lines.flush();
      isClosed = true;
      const written = new Promise((resolve) => output.once('close', resolve));
      output.end();
      await Promise.race([written, Bun.sleep(MAX_FLUSH_MS)]);
      // The exit hook of the destination would continue to retry for as long as nobody reads.
      output.destroy();
    },
  };
}

/** A line contains its level, its time and the fields of the caller: no process id, no host name. */
export function createLogger(level: LevelWithSilent, destination: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return pino(options, destination);
}
