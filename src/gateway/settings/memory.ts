/** What things cost in memory, as `bun run soak` measures it, and how many fit into what the process may use. */

import { totalmem } from 'node:os';

const KiB = 1024;
const MiB = 1024 * KiB;

/** The process with nothing to do, once it has served some requests of every kind. */
export const GATEWAY_BYTES = 64 * MiB;
/** A call that waits for another server: its connections on both sides, and what is remembered of it. */
export const WAITING_CALL_BYTES = 16 * KiB;
/** A streamed body whose reader is slower than the upstream: what Bun's fetch reads ahead, and what waits to be sent. */
export const STREAMED_BODY_BYTES = 2400 * KiB;

/** How many calls of each short kind may be in flight at a time. */
export const SHORT_CALL_LIMITS = {
  identityProvider: 250,
  sessions: 450,
  signOuts: 50,
  reads: 750,
} as const;
/** They have their places among the streams, too. */
export const PUBLIC_DETAILS_LIMIT = 100;
const SHORT_CALLS = Object.values(SHORT_CALL_LIMITS).reduce<number>((sum, limit) => sum + limit, 0);

const MAX_BODY_BUDGET_BYTES = 64 * MiB;
/** With fewer, a handful of listeners would be refused; a start in so little memory is warned of. */
const MIN_STREAMED_BODIES = 8;

interface Limits {
  readonly maxInFlightRequests: number;
  readonly maxStreamedBodies: number;
  readonly memoryLimitBytes: number;
}

/** What the process may use: its container's or unit's limit, else the memory of the machine. */
export function memoryLimitBytes(): number {
  return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
}

/** For all request bodies together. */
export function requestBodyBudgetBytes(limitBytes: number): number {
  return Math.min(MAX_BODY_BUDGET_BYTES, limitBytes / 4);
}

/** All calls that may be in flight at a time, each with a connection to another server. */
export function mostCalls(maxInFlightRequests: number): number {
  return maxInFlightRequests + SHORT_CALLS;
}

/** As many as fit beside everything else that is promised. */
export function defaultStreamedBodies(maxInFlightRequests: number, limitBytes: number): number {
  const others = promisedBytes({ maxInFlightRequests, maxStreamedBodies: 0, memoryLimitBytes: limitBytes });
  return Math.max(MIN_STREAMED_BODIES, Math.floor((limitBytes - others) / STREAMED_BODY_BYTES));
}

/** The memory that is used when everything that the settings allow comes at once. */
export function promisedBytes({ maxInFlightRequests, maxStreamedBodies, memoryLimitBytes }: Limits): number {
  return (
    GATEWAY_BYTES +
    mostCalls(maxInFlightRequests) * WAITING_CALL_BYTES +
    requestBodyBudgetBytes(memoryLimitBytes) +
    maxStreamedBodies * STREAMED_BODY_BYTES
  );
}

/** Undefined when the memory holds what the settings promise. */
export function memoryWarning(limits: Limits): string | undefined {
  const promised = promisedBytes(limits);
  if (promised <= limits.memoryLimitBytes) return undefined;
  const inMiB = (bytes: number) => `${Math.round(bytes / MiB)} MiB`;
  return (
    `MAX_IN_FLIGHT_REQUESTS (${limits.maxInFlightRequests}) and MAX_STREAMED_BODIES (${limits.maxStreamedBodies}) ` +
    `promise ${inMiB(promised)}, and the process may use ${inMiB(limits.memoryLimitBytes)}`
  );
}
