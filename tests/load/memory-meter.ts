/** Measures what a gateway uses of its container's memory, in a thread: a peak may be shorter than a test's turn. */

import { chargedBytes, type MemoryCgroup } from './memory-cgroup.ts';
import { residentBytes } from './process-status.ts';

interface Metered {
  readonly pid: number;
  /** Where there is none, the resident memory is measured. */
  readonly cgroup: Pick<MemoryCgroup, 'folder' | 'version'> | undefined;
  /** Who uses more is killed, as version 2 of cgroups does. */
  readonly limitMb: number;
}

export interface MemoryMeter extends Disposable {
  /** In MiB, as all of these. */
  readonly now: () => number;
  readonly peak: () => number;
}

const EVERY_MS = 10;
const MIB = 1024 * 1024;

export function meterMemory({ pid, cgroup, limitMb }: Metered): MemoryMeter {
  const shared = new Float64Array(new SharedArrayBuffer(8));
  const metered = { pid, limitMb, cgroup: cgroup && { folder: cgroup.folder, version: cgroup.version } };
  const thread = new Worker(import.meta.url);
  thread.postMessage({ metered, shared });
  return {
    now: () => Math.round(usedMb(metered)),
    peak: () => Math.round(shared[0] ?? 0),
    [Symbol.dispose]: () => thread.terminate(),
  };
}

function usedMb({ pid, cgroup }: Metered): number {
  return (cgroup ? chargedBytes(cgroup) : residentBytes(pid)) / MIB;
}

function sample(metered: Metered, peak: Float64Array): void {
  const used = usedMb(metered);
  if (used > metered.limitMb) process.kill(metered.pid, 'SIGKILL');
  peak[0] = Math.max(peak[0] ?? 0, used);
}

declare const self: Worker;
if (!Bun.isMainThread) {
  self.onmessage = ({
    data: { metered, shared },
  }: MessageEvent<{ metered: Metered; shared: Float64Array }>) => {
    const timer = setInterval(() => {
      try {
        sample(metered, shared);
      } catch {
        // The process has ended.
        clearInterval(timer);
      }
    }, EVERY_MS);
  };
}
