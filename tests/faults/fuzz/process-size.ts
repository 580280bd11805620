/** How much a process holds, where the system tells it. */

import { readdir, readFile } from 'node:fs/promises';

export interface ProcessSize {
  readonly residentMiB: number;
  readonly openFiles: number;
}

/** Undefined where there is no /proc. */
export async function processSize(pid: number): Promise<ProcessSize | undefined> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    const openFiles = await readdir(`/proc/${pid}/fd`);
    return {
      residentMiB: Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024),
      openFiles: openFiles.length,
    };
  } catch {
    return undefined;
  }
}
