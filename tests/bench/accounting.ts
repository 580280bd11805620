/** What the operating system has counted for a process and its descendants: CPU time and peak memory. */

import { readdir, readFile, writeFile } from 'node:fs/promises';

const CLOCK_TICKS_PER_SECOND = Number(Bun.spawnSync(['getconf', 'CLK_TCK']).stdout.toString());

export interface Account {
  readonly cpuSeconds: number;
  /** The sum of each process's VmHWM. */
  readonly peakMb: number;
  readonly rssMb: number;
}

interface Stat {
  readonly parent: number;
  readonly ticks: number;
}

/** CPU time includes children that have ended and been waited for. */
export async function accountOf(pid: number): Promise<Account> {
  const stats = await allStats();
  let ticks = 0;
  let peakKb = 0;
  let rssKb = 0;
  for (const each of tree(pid, stats)) {
    ticks += stats.get(each)?.ticks ?? 0;
    const status = await readFile(`/proc/${each}/status`, 'utf8').catch(() => '');
    peakKb += kilobytes(status, 'VmHWM');
    rssKb += kilobytes(status, 'VmRSS');
  }
  return { cpuSeconds: ticks / CLOCK_TICKS_PER_SECOND, peakMb: peakKb / 1024, rssMb: rssKb / 1024 };
}

/** From here on the peak is that of what comes. @see proc_pid_clear_refs(5) */
export async function forgetPeak(pid: number): Promise<void> {
  for (const each of tree(pid, await allStats())) await writeFile(`/proc/${each}/clear_refs`, '5');
}

function tree(pid: number, stats: ReadonlyMap<number, Stat>): number[] {
  const children = [...stats].filter(([, { parent }]) => parent === pid).map(([child]) => child);
  return [pid, ...children.flatMap((child) => tree(child, stats))];
}

async function allStats(): Promise<Map<number, Stat>> {
  const stats = new Map<number, Stat>();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const text = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    if (text) stats.set(Number(name), parseStat(text));
  }
  return stats;
}

/** @see proc_pid_stat(5): the name is in parentheses and may hold anything; after it come state, ppid and so on */
function parseStat(text: string): Stat {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (number: number) => Number(fields[number - 3]);
  return { parent: field(4), ticks: field(14) + field(15) + field(16) + field(17) };
}

function kilobytes(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
}
