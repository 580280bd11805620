/** What Linux reports of a process: its memory and its sockets. */

import { readdir, readFile, readlink } from 'node:fs/promises';

export interface Memory {
  readonly rssMb: number;
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
    // One that is closed meanwhile does not count.
    (await readdir(folder)).map((descriptor) => readlink(`${folder}/${descriptor}`).catch(() => '')),
  );
  return targets.filter((target) => target.startsWith('socket:')).length;
}
