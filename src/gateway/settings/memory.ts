/** How much memory the process may use, and how much it takes itself, as measured by `bun run soak`. */

import { totalmem } from 'node:os';

const MiB = 1024 ** 2;

/** An idle process that has served some requests of every kind. */
const GATEWAY_BYTES = 64 * MiB;
/** How much of that is Bun's code in the file cache, without which the process would be far too slow. */
export const CODE_BYTES = 40 * MiB;
/** What traces add to {@link GATEWAY_BYTES}: the packages, the spans of requests in flight, and those that wait in the queue. */
const TRACES_BYTES = 40 * MiB;
/** With less, even a few listeners would be refused. A start with so little memory logs a warning. */
const MIN_LEDGER_BYTES = 40 * MiB;

export interface MemoryLimits {
  readonly memoryLimitBytes: number;
  /** Undefined when no traces are exported. */
  readonly traceShare: number | undefined;
}

/** The memory that the process may use: the limit of its container or unit, otherwise the machine's memory. */
export function memoryLimitBytes(): number {
  return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
}

/** The memory for everything that is admitted: all but that of the process itself. */
export function ledgerBytes(limits: MemoryLimits): number {
  return Math.max(MIN_LEDGER_BYTES, limits.memoryLimitBytes - processBytes(limits));
}

/** Undefined when there is enough memory. */
export function memoryWarning(limits: MemoryLimits): string | undefined {
  const needed = processBytes(limits) + MIN_LEDGER_BYTES;
  if (needed <= limits.memoryLimitBytes) return undefined;
  const inMiB = (bytes: number) => `${Math.round(bytes / MiB)} MiB`;
  return `the process may use ${inMiB(limits.memoryLimitBytes)} of memory, and needs ${inMiB(needed)}`;
}

export function processBytes({ traceShare }: MemoryLimits): number {
  return GATEWAY_BYTES + (traceShare === undefined ? 0 : TRACES_BYTES);
}
