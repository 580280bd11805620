/** A memory cgroup for a process that a test starts: its limit is the container's. */

import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';

export interface MemoryCgroup extends AsyncDisposable {
  /** Runs a command in it. */
  readonly prefix: readonly string[];
}

/** Where this process may make one, by the version of cgroups. @see cgroups(7) */
const VERSIONS = [
  { parent: '/sys/fs/cgroup', controllers: '/sys/fs/cgroup/cgroup.subtree_control', limit: 'memory.max' },
  { parent: '/sys/fs/cgroup/memory', controllers: undefined, limit: 'memory.limit_in_bytes' },
] as const;
let opened = 0;

/** Undefined where none can be made: without root's rights, or in a container that does not give them. */
export async function openMemoryCgroup(limitBytes: number): Promise<MemoryCgroup | undefined> {
  for (const { parent, controllers, limit } of VERSIONS) {
    const folder = `${parent}/music-gateway-${process.pid}-${opened++}`;
    try {
      if (controllers && !/\bmemory\b/.test(await readFile(controllers, 'utf8'))) continue;
      await mkdir(folder);
      await writeFile(`${folder}/${limit}`, String(limitBytes));
      return {
        prefix: ['sh', '-c', `echo $$ >${folder}/cgroup.procs && exec "$@"`, 'sh'],
        [Symbol.asyncDispose]: () => rmdir(folder),
      };
    } catch {
      await rmdir(folder).catch(() => {});
    }
  }
  return undefined;
}
