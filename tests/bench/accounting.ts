/** What Linux has counted for a process: CPU time and memory. */

import { dlopen } from 'bun:ffi';
import { readFile, writeFile } from 'node:fs/promises';

const libc = dlopen('libc.so.6', { clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' } });

export async function accountOf(pid: number) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
  return {
    cpuSeconds: cpuSecondsOf(pid),
    peakMb: kilobytes('VmHWM') / 1024,
    rssMb: kilobytes('VmRSS') / 1024,
  };
}

/** Sets the peak to the memory in use now. @see proc_pid_clear_refs(5) */
export async function resetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, '5');
}

/** Of all its threads, also those that have ended. `/proc` counts in steps of 10 ms. @see clock_getcpuclockid(3) */
function cpuSecondsOf(pid: number): number {
  const time = new BigInt64Array(2);
  // Linux: the inverted pid, and 2 for a clock of the scheduler.
  if (libc.symbols.clock_gettime((~pid << 3) | 2, time) !== 0) throw new Error(`no process ${pid}`);
  const [seconds, nanoseconds] = time;
  return Number(seconds) + Number(nanoseconds) / 1e9;
}
