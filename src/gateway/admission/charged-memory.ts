/** Reads the memory that the kernel charges this process for, with sockets and what the allocator keeps. */

import { openSync, readFileSync, readSync } from 'node:fs';

/** How one version of cgroups names its files, and where it is mounted. @see cgroups(7) */
const VERSIONS = [
  {
    root: '/sys/fs/cgroup',
    own: /^0::(.*)$/m,
    limit: 'memory.max',
    // It includes sockets.
    used: ['memory.current'],
    fileCache: /^(?:in)?active_file (\d+)$/gm,
  },
  {
    root: '/sys/fs/cgroup/memory',
    own: /^\d+:memory:(.*)$/m,
    limit: 'memory.limit_in_bytes',
    used: ['memory.usage_in_bytes', 'memory.kmem.tcp.usage_in_bytes'],
    fileCache: /^total_(?:in)?active_file (\d+)$/gm,
  },
] as const;

const PAGE_BYTES = 4096;
const buffer = Buffer.alloc(8192);

/**
 * Opens the files once, because they are read many times a second.
 *
 * @param machineBytes the machine's memory; a limit must be smaller to count
 * @param system where the system's own files are
 * @returns a function that returns the bytes of the process's cgroup, without the file cache, which the kernel frees when
 *   it needs memory; without a limited cgroup, those of the process and of the machine's sockets
 */
export function openChargedMemory(machineBytes: number, system = ''): () => number {
  for (const version of VERSIONS) {
    const folder = limitedCgroup(version, machineBytes, system);
    if (folder === undefined) continue;
    const used = version.used.map((file) => open(`${folder}/${file}`));
    const stat = open(`${folder}/memory.stat`);
    return () => {
      const bytes = used.reduce((sum, read) => sum + Number(read()), 0);
      return [...stat().matchAll(version.fileCache)].reduce((sum, [, cache]) => sum - Number(cache), bytes);
    };
  }
  const sockets = open(`${system}/proc/net/sockstat`);
  return () =>
    process.memoryUsage.rss() + Number(/^TCP:.* mem (\d+)/m.exec(sockets())?.[1] ?? 0) * PAGE_BYTES;
}

/** The nearest cgroup of the process that has a limit. A container sees its own cgroup as the root. */
function limitedCgroup(
  { root, own, limit }: (typeof VERSIONS)[number],
  machineBytes: number,
  system: string,
): string | undefined {
  const path = own.exec(contents(`${system}/proc/self/cgroup`))?.[1];
  for (let folder = path; folder !== undefined; ) {
    const bytes = Number(contents(`${system}${root}${folder}/${limit}`) || Number.NaN);
    if (bytes < machineBytes) return system + root + folder;
    folder = folder.length > 1 ? folder.slice(0, folder.lastIndexOf('/')) : undefined;
  }
  return undefined;
}

function contents(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

/** A file that does not exist is empty. */
function open(file: string): () => string {
  try {
    const descriptor = openSync(file, 'r');
    return () => buffer.toString('latin1', 0, readSync(descriptor, buffer, 0, buffer.length, 0));
  } catch {
    return () => '';
  }
}
