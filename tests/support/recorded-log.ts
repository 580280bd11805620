/** A gateway's log, kept for the test to read. */

import { createLogger } from '../../src/gateway/telemetry/logger.ts';

/** What the tokens, codes, verifiers and prompts of the tests have in them. */
const SECRET = /access-\d|refresh-\d|identity-1|secret-code|v{43}|taarab/;

export type LogLine = Readonly<Record<string, unknown>>;

export type RecordedLog = ReturnType<typeof recordLog>;

export function recordLog() {
  const lines: LogLine[] = [];
  const warnings: string[] = [];
  const secrets: string[] = [];
  let written = Promise.withResolvers<void>();
  const write = (text: string) => {
    const line: LogLine = JSON.parse(text);
    lines.push(line);
    if (line['level'] !== 'info' && line['level'] !== 'debug') warnings.push(text);
    if (SECRET.test(text)) secrets.push(text);
    written.resolve();
    written = Promise.withResolvers();
  };
  return {
    logger: createLogger('debug', { write }),
    /** Everything, down to debug. */
    lines,
    /** As they were written: what somebody should look at. */
    warnings,
    /** Those that no log may have. */
    secrets,
    /** Waits for a line with these values; that of a streamed response is written when its body has ended. */
    async line(values: LogLine) {
      for (;;) {
        const found = lines.find((line) =>
          Object.entries(values).every(([name, value]) => line[name] === value),
        );
        if (found) return found;
        await written.promise;
      }
    },
  };
}
