/** How much memory things use, as measured by `bun run soak`, and how many of them fit into the process's limit. */

import { totalmem } from 'node:os';
import type { TraceSettings } from './trace-settings.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

/** An idle process that has served some requests of every kind. */
const GATEWAY_BYTES = 64 * MiB;
/** What exporting traces adds to it: the packages, the spans of requests in flight, and those that wait in the queue. */
const TRACES_BYTES = 40 * MiB;
/** A call that waits for another server: both of its connections, and the state of its request. */
export const WAITING_CALL_BYTES = 16 * KiB;
/** A streamed body with a slow reader: what Bun's fetch has read ahead, and what waits to be sent. */
export const STREAMED_BODY_BYTES = 2400 * KiB;

/** How many short calls of each kind may be in flight. */
export const SHORT_CALL_LIMITS = {
  identityProvider: 250,
  sessions: 450,
  signOuts: 50,
  reads: 750,
} as const;
/** Calls for public details also take a place among the streams. */
export const PUBLIC_DETAILS_LIMIT = 100;
const SHORT_CALLS = Object.values(SHORT_CALL_LIMITS).reduce<number>((sum, limit) => sum + limit, 0);

const MAX_BODY_BUDGET_BYTES = 64 * MiB;
/** With fewer, a handful of listeners would be refused. A start with so little memory logs a warning. */
const MIN_STREAMED_BODIES = 8;

type Traces = TraceSettings | undefined;

interface Limits {
  readonly maxInFlightRequests: number;
  readonly maxStreamedBodies: number;
  readonly memoryLimitBytes: number;
  readonly traces: Traces;
}

/** The memory that the process may use: the limit of its container or unit, otherwise the machine's memory. */
export function memoryLimitBytes(): number {
  return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
}

/** The process without anything that is admitted. */
export function processBytes(traces: Traces): number {
  return GATEWAY_BYTES + (traces ? TRACES_BYTES : 0);
}

/** The budget for all request bodies together. */
export function requestBodyBudgetBytes(limitBytes: number): number {
  return Math.min(MAX_BODY_BUDGET_BYTES, limitBytes / 4);
}

/** The maximum of calls in flight, each with a connection to another server. */
export function maxCalls(maxInFlightRequests: number): number {
  return maxInFlightRequests + SHORT_CALLS;
}

/** As many as fit beside everything else that may be admitted. */
export function defaultStreamedBodies(limits: Omit<Limits, 'maxStreamedBodies'>): number {
  const free = limits.memoryLimitBytes - promisedBytes({ ...limits, maxStreamedBodies: 0 });
  return Math.max(MIN_STREAMED_BODIES, Math.floor(free / STREAMED_BODY_BYTES));
}

/** The memory in use when everything that the settings allow happens at once. */
export function promisedBytes(limits: Limits): number {
  const { maxInFlightRequests, maxStreamedBodies, memoryLimitBytes, traces } = limits;
  return (
    processBytes(traces) +
    maxCalls(maxInFlightRequests) * WAITING_CALL_BYTES +
    requestBodyBudgetBytes(memoryLimitBytes) +
    maxStreamedBodies * STREAMED_BODY_BYTES
  );
}

/** Undefined when there is enough memory for what the settings allow. */
export function memoryWarning(limits: Limits): string | undefined {
  const promised = promisedBytes(limits);
  if (promised <= limits.memoryLimitBytes) return undefined;
  const inMiB = (bytes: number) => `${Math.round(bytes / MiB)} MiB`;
  return (
    `MAX_IN_FLIGHT_REQUESTS (${limits.maxInFlightRequests}) and MAX_STREAMED_BODIES (${limits.maxStreamedBodies}) ` +
    `promise ${inMiB(promised)}, and the process may use ${inMiB(limits.memoryLimitBytes)}`
  );
}
