/** Finds limits of the process that are too low for the number of calls that the settings allow. */

import { readFileSync } from 'node:fs';
import type { Environment } from './environment-reader.ts';
import { type MemoryLimits, memoryWarning } from './memory.ts';

/** Each call has a connection on both sides. The rest is for Redis, logs and idle connections. */
const FILES_PER_CALL = 2;
const OTHER_FILES = 200;

/**
 * How many short calls of each kind may be in flight: token exchanges at the identity provider, sign-in and refresh at
 * the upstream, sign-out, and session check with models.
 */
export const SHORT_CALLS = { identityProvider: 250, sessions: 450, signOuts: 200, reads: 750 } as const;

/** Bun's own setting, which it reads only from the environment that it is started with. */
const FETCH_LIMIT = 'BUN_CONFIG_MAX_HTTP_REQUESTS';
const DEFAULT_FETCH_LIMIT = 256;

type Limits = MemoryLimits & { readonly maxInFlightRequests: number };

/** @param openFiles the limit of the process */
export function limitWarnings(limits: Limits, environment: Environment, openFiles: number): string[] {
  const { maxInFlightRequests } = limits;
  const calls = Object.values(SHORT_CALLS).reduce<number>((sum, limit) => sum + limit, maxInFlightRequests);
  const fetches = environment[FETCH_LIMIT] || DEFAULT_FETCH_LIMIT;
  const files = calls * FILES_PER_CALL + OTHER_FILES;
  const warnings = [
    // Also when it is no number.
    !(Number(fetches) >= calls) &&
      `${FETCH_LIMIT} is ${fetches}, less than the ${calls} calls that may be in flight with MAX_IN_FLIGHT_REQUESTS ` +
        `(${maxInFlightRequests}); start with "bun run start"`,
    openFiles < files &&
      `the limit of ${openFiles} open files is too low for MAX_IN_FLIGHT_REQUESTS, which needs ${files}`,
    memoryWarning(limits),
  ];
  return warnings.filter((warning) => typeof warning === 'string');
}

/** Infinite when there is no limit or it is unknown. @see proc(5), `/proc/pid/limits` */
export function openFilesLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return Number(limit ?? Number.POSITIVE_INFINITY);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
