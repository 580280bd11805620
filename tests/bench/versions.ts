/** Versions of all that takes part. */

import manifest from '../../package.json' with { type: 'json' };
import bench from './package.json' with { type: 'json' };

const COMMANDS = ['node --version', 'caddy version', 'haproxy -v', 'nginx -v', 'wrk -v', 'h2load --version'];

/** Leaves out what is not installed. */
export function versions(): string {
  const packages = { bun: Bun.version, ...manifest.dependencies, ...bench.dependencies };
  const programs = COMMANDS.flatMap((command) => {
    const [program = '', option = ''] = command.split(' ');
    if (!Bun.which(program)) return [];
    const { stdout, stderr } = Bun.spawnSync([program, option]);
    return [[program, /\d+(?:\.\d+)+/.exec(`${stdout}${stderr}`)?.[0]]];
  });
  return [...Object.entries(packages), ...programs].map((pair) => pair.join(' ')).join(', ');
}
