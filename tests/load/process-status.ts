/** What Linux reports about a process. Every function rejects where there is no /proc, and when the process has ended. */

import { readdir, readFile, readlink } from 'node:fs/promises';

/** The resident memory, now and at its peak. @see proc_pid_status(5): VmRSS and VmHWM, in kB */
export async function memoryOf(pid: number): Promise<{ readonly rssMb: number; readonly peakMb: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const megabytes = (name: string) =>
    Math.round(Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 102.4) / 10;
  return { rssMb: megabytes('VmRSS'), peakMb: megabytes('VmHWM') };
}

export async function openFilesOf(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length;
}

export async function openSocketsOf(pid: number): Promise<number> {
  const folder = `/proc/${pid}/fd`;
  // A descriptor that is closed meanwhile does not count.
  const target = (descriptor: string) => readlink(`${folder}/${descriptor}`).catch(() => '');
  const targets = await Promise.all((await readdir(folder)).map(target));
  return targets.filter((each) => each.startsWith('socket:')).length;
}
