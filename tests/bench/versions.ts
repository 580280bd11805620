/** Versions of all that takes part. */

import manifest from '../../package.json' with { type: 'json' };
import bench from './package.json' with { type: 'json' };

export const benchPackages: Readonly<Record<string, string>> = bench.dependencies;

/** How each program is asked; some answer on stderr. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  node: ['node', '--version'],
  caddy: ['caddy', 'version'],
  haproxy: ['haproxy', '-v'],
  nginx: ['nginx', '-v'],
  wrk: ['wrk', '-v'],
};

/** By name; what is not installed is not in it. */
export function versions(): Record<string, string> {
  const found: Record<string, string> = { bun: Bun.version, ...manifest.dependencies, ...benchPackages };
  for (const [name, command] of Object.entries(PROGRAMS)) {
    if (!Bun.which(name)) continue;
    const { stdout, stderr } = Bun.spawnSync([...command]);
    const [version] = /\d+(?:\.\d+)+/.exec(`${stdout}${stderr}`) ?? [];
    if (version !== undefined) found[name] = version;
  }
  return found;
}
