/** What every scenario needs: a gateway and an upstream, each a process of its own, and tracks. */

import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { writeTracks } from './content.ts';
import { fileLimitProblem } from './process-status.ts';
import { startUpstreamProcess, type UpstreamProcess } from './upstream-process.ts';

export interface RigOptions {
  readonly trackBytes?: number;
  /** How often an access token can be used; without end unless given. */
  readonly usesPerToken?: number;
  /** How long the upstream leaves a silent connection open; longer than any scenario unless given. */
  readonly upstreamIdleSeconds?: number;
  /** Connections that clients hold at once: more than the files a process may open is refused. */
  readonly connections: number;
  /** After so long both processes are killed, and the scenario fails. */
  readonly limitMs: number;
}

export interface Rig extends AsyncDisposable {
  readonly gateway: GatewayProcess;
  readonly upstream: UpstreamProcess;
  /** SHA-256 of each track. */
  readonly checksums: readonly string[];
}

/** What a process opens besides connections. */
const OTHER_FILES = 100;

export async function startRig(options: RigOptions): Promise<Rig> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(`${tmpdir()}/soak-`);
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const checksums = options.trackBytes ? await writeTracks(folder, options.trackBytes) : [];
  const upstream = stack.use(
    await startUpstreamProcess({
      trackFolder: folder,
      usesPerToken: options.usesPerToken ?? 0,
      idleSeconds: options.upstreamIdleSeconds ?? 255,
    }),
  );
  const gateway = stack.use(await startGatewayProcess({ UPSTREAM_URL: upstream.url }));
  // Also when the whole is given up.
  const exit = () => {
    gateway.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', exit);
  stack.defer(() => void process.off('exit', exit));
  await requireFiles(gateway, upstream, options.connections);
  const limit = setTimeout(() => {
    console.error(`the scenario takes longer than ${options.limitMs} ms: its processes are ended`);
    gateway.kill('SIGKILL');
    upstream.kill();
  }, options.limitMs);
  stack.defer(() => clearTimeout(limit));
  const started = stack.move();
  return { gateway, upstream, checksums, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

async function requireFiles(
  gateway: GatewayProcess,
  upstream: UpstreamProcess,
  connections: number,
): Promise<void> {
  const problems = await Promise.all([
    fileLimitProblem('the load generator', process.pid, connections + OTHER_FILES),
    // A connection of the client, and one to the upstream for it.
    fileLimitProblem('the gateway', gateway.pid, 2 * connections + OTHER_FILES),
    fileLimitProblem('the upstream', upstream.pid, connections + OTHER_FILES),
  ]);
  const problem = problems.find((each) => each !== undefined);
  if (problem !== undefined) throw new Error(problem);
}
