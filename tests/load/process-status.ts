/** What Linux reports about a process. Every function rejects or throws where there is no /proc, and when the process has ended. */

import { readFileSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';

/** The resident memory in bytes. @see proc_pid_status(5): VmRSS, in kB */
export function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
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
