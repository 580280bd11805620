/**
 * A memory cgroup for a process that a test starts: its limit is the container's, and what it is charged includes its
 * sockets. A thread measures that, because a peak may be shorter than a test's turn.
 */

import { readFileSync } from 'node:fs';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';

/** What the thread gets. */
interface Metered {
  readonly folder: string;
  /** An index into the versions. */
  readonly version: number;
  readonly pid: number;
  readonly limitMb: number;
  /** In MiB, in shared memory. */
  readonly peakMb: Float64Array;
}

const MIB = 1024 * 1024;
const EVERY_MS = 10;
/**
 * Where this process may make one, by the version of cgroups. Version 1 charges sockets apart, and only once they have a
 * limit; version 2 charges them with everything else. @see cgroups(7)
 */
const VERSIONS = [
  {
    parent: '/sys/fs/cgroup',
    controllers: '/sys/fs/cgroup/cgroup.subtree_control',
    limits: ['memory.max'],
    usages: ['memory.current'],
    cache: /^inactive_file (\d+)$/m,
  },
  {
    parent: '/sys/fs/cgroup/memory',
    controllers: undefined,
    limits: ['memory.limit_in_bytes', 'memory.kmem.tcp.limit_in_bytes'],
    usages: ['memory.usage_in_bytes', 'memory.kmem.tcp.usage_in_bytes'],
    cache: /^total_inactive_file (\d+)$/m,
  },
] as const;
let opened = 0;

/** Undefined where none can be made: without root's rights, or in a container that does not give them. */
export async function openMemoryCgroup(limitMb: number) {
  for (const [version, { parent, controllers, limits }] of VERSIONS.entries()) {
    const folder = `${parent}/music-gateway-${process.pid}-${opened++}`;
    try {
      if (controllers && !/\bmemory\b/.test(await readFile(controllers, 'utf8'))) continue;
      await mkdir(folder);
      for (const limit of limits) await writeFile(`${folder}/${limit}`, String(limitMb * MIB));
      return {
        /** Runs a command in it. */
        prefix: ['sh', '-c', `echo $$ >${folder}/cgroup.procs && exec "$@"`, 'sh'],
        /** Measures the process, and kills it when it uses more than the limit, as version 2 of cgroups does. */
        meter(pid: number) {
          const peakMb = new Float64Array(new SharedArrayBuffer(8));
          const thread = new Worker(import.meta.url);
          const metered: Metered = { folder, version, pid, limitMb, peakMb };
          thread.postMessage(metered);
          return {
            /** In MiB, as the peak. */
            now: () => Math.round(chargedMb(metered)),
            peak: () => Math.round(peakMb[0] ?? 0),
            [Symbol.dispose]: () => thread.terminate(),
          };
        },
        [Symbol.asyncDispose]: () => rmdir(folder),
      };
    } catch {
      await rmdir(folder).catch(() => {});
    }
  }
  return undefined;
}

/** What it is charged, without the file cache that the kernel could drop at once. */
function chargedMb({ folder, version }: Metered): number {
  const read = (file: string) => readFileSync(`${folder}/${file}`, 'utf8');
  const { usages, cache } = VERSIONS[version] ?? VERSIONS[0];
  const used = usages.reduce((sum, usage) => sum + Number(read(usage)), 0);
  return (used - Number(cache.exec(read('memory.stat'))?.[1] ?? 0)) / MIB;
}

declare const self: Worker;
if (!Bun.isMainThread) {
  self.onmessage = ({ data: metered }: MessageEvent<Metered>) => {
    const { pid, limitMb, peakMb } = metered;
    const timer = setInterval(() => {
      try {
        const used = chargedMb(metered);
        if (used > limitMb) process.kill(pid, 'SIGKILL');
        peakMb[0] = Math.max(peakMb[0] ?? 0, used);
      } catch {
        // The process has ended.
        clearInterval(timer);
      }
    }, EVERY_MS);
  };
}
