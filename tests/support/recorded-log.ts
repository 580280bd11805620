/** A gateway's log, kept for the test to read. */

import type { Logger } from 'pino';
import { createLogger } from '../../src/telemetry/logger.ts';

export type LogLine = Readonly<Record<string, unknown>>;

export interface RecordedLog {
  readonly logger: Logger;
  /** Everything, down to debug. */
  readonly lines: LogLine[];
  /** As they were written: what somebody should look at. */
  readonly warnings: string[];
}

export function recordLog(): RecordedLog {
  const lines: LogLine[] = [];
  const warnings: string[] = [];
  const write = (text: string) => {
    const line: LogLine = JSON.parse(text);
    lines.push(line);
    if (line['level'] !== 'info' && line['level'] !== 'debug') warnings.push(text);
  };
  return { logger: createLogger('debug', { write }), lines, warnings };
}
