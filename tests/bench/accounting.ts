/** What Linux has counted for a process: CPU time and memory. */

import { readFile, writeFile } from 'node:fs/promises';

const CLOCK_TICKS_PER_SECOND = Number(Bun.spawnSync(['getconf', 'CLK_TCK']).stdout.toString());

/** CPU time of all its threads. @see proc_pid_stat(5): the second field, in parentheses, may hold spaces */
export async function accountOf(pid: number) {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const fromThird = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
  return {
    cpuSeconds: (Number(fromThird[11]) + Number(fromThird[12])) / CLOCK_TICKS_PER_SECOND,
    peakMb: kilobytes('VmHWM') / 1024,
    rssMb: kilobytes('VmRSS') / 1024,
  };
}

/** Sets the peak to the memory in use now. @see proc_pid_clear_refs(5) */
export async function resetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, '5');
}
