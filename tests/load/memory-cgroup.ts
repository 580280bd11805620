/** A memory cgroup for a process that a test starts: its limit is the container's, and what it is charged includes its sockets. */

import { readFileSync } from 'node:fs';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';

export interface MemoryCgroup extends AsyncDisposable {
  /** Runs a command in it. */
  readonly prefix: readonly string[];
  readonly folder: string;
  /** An index into the versions. */
  readonly version: number;
}

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
export async function openMemoryCgroup(limitBytes: number): Promise<MemoryCgroup | undefined> {
  for (const [version, { parent, controllers, limits }] of VERSIONS.entries()) {
    const folder = `${parent}/music-gateway-${process.pid}-${opened++}`;
    try {
      if (controllers && !/\bmemory\b/.test(await readFile(controllers, 'utf8'))) continue;
      await mkdir(folder);
      for (const limit of limits) await writeFile(`${folder}/${limit}`, String(limitBytes));
      return {
        prefix: ['sh', '-c', `echo $$ >${folder}/cgroup.procs && exec "$@"`, 'sh'],
        folder,
        version,
        [Symbol.asyncDispose]: () => rmdir(folder),
      };
    } catch {
      await rmdir(folder).catch(() => {});
    }
  }
  return undefined;
}

/** What it is charged, without the file cache that the kernel could drop at once. */
export function chargedBytes({ folder, version }: Pick<MemoryCgroup, 'folder' | 'version'>): number {
  const read = (file: string) => readFileSync(`${folder}/${file}`, 'utf8');
  const { usages, cache } = VERSIONS[version] ?? VERSIONS[0];
  const used = usages.reduce((sum, usage) => sum + Number(read(usage)), 0);
  return used - Number(cache.exec(read('memory.stat'))?.[1] ?? 0);
}
