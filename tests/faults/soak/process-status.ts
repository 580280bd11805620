/** What Linux tells of a process: its memory, its sockets, how many files it may open. */

import { readdir, readFile, readlink } from 'node:fs/promises';

export interface Memory {
  readonly rssMb: number;
  /** The most it ever was. */
  readonly peakMb: number;
}

/** @see proc_pid_status(5): VmRSS and VmHWM, in kB */
export async function memoryOf(pid: number): Promise<Memory> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const megabytes = (name: string) =>
    Math.round(Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 102.4) / 10;
  return { rssMb: megabytes('VmRSS'), peakMb: megabytes('VmHWM') };
}

export async function openSockets(pid: number): Promise<number> {
  const folder = `/proc/${pid}/fd`;
  const targets = await Promise.all(
    // One that is closed meanwhile counts as none.
    (await readdir(folder)).map((descriptor) => readlink(`${folder}/${descriptor}`).catch(() => '')),
  );
  return targets.filter((target) => target.startsWith('socket:')).length;
}

/** What is to be said when a process may not open as many files as it will need; undefined when it may. */
export async function fileLimitProblem(
  name: string,
  pid: number,
  needed: number,
): Promise<string | undefined> {
  const limits = await readFile(`/proc/${pid}/limits`, 'utf8');
  const most = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
  if (most === 'unlimited' || Number(most) >= needed) return undefined;
  return `${name} needs ${needed} open files and may have ${most}: raise "ulimit -n"`;
}
