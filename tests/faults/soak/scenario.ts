/** What every scenario needs: a gateway and an upstream, each a process of its own, tracks, and session checks. */

import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { Connection } from './connection.ts';
import { writeTracks } from './content.ts';
import { type Figures, type Outcome, Problems } from './outcome.ts';
import { memoryOf, openSockets } from './process-status.ts';
import { signedIn } from './requests.ts';
import { firstCookies } from './rotating-sessions.ts';
import { startUpstreamProcess, type UpstreamProcess } from './upstream-process.ts';

export interface ScenarioOptions {
  readonly trackBytes?: number;
  /** How often an access token can be used; without end by default. */
  readonly usesPerToken?: number;
  /** How long the upstream leaves a silent connection open; longer than any scenario by default. */
  readonly upstreamIdleSeconds?: number;
  /** After this time both processes are killed, and the scenario fails. */
  readonly limitMs: number;
}

export interface Rig {
  readonly gateway: GatewayProcess;
  readonly upstream: UpstreamProcess;
  /** SHA-256 of each track. */
  readonly checksums: readonly string[];
  readonly problems: Problems;
  /** The gateway's sockets before any request. */
  readonly socketsAtStart: number;
}

const WARM_UP_CHECKS = 10;

/** @param work sends the load and returns its figures */
export async function runScenario(
  { trackBytes = 0, usesPerToken = 0, upstreamIdleSeconds = 255, limitMs }: ScenarioOptions,
  work: (rig: Rig) => Promise<Figures>,
): Promise<Outcome<Figures>> {
  const problems = new Problems();
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(`${tmpdir()}/soak-`);
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const checksums = trackBytes ? await writeTracks(folder, trackBytes) : [];
  const upstreamOptions = { trackFolder: folder, usesPerToken, idleSeconds: upstreamIdleSeconds };
  const upstream = stack.use(await startUpstreamProcess(upstreamOptions));
  const gateway = stack.use(await startGatewayProcess({ UPSTREAM_URL: upstream.url }));
  // An interrupted run skips the disposal. The upstream then ends with its stdin.
  const onExit = () => {
    gateway.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', onExit);
  stack.defer(() => void process.off('exit', onExit));
  const limit = setTimeout(() => {
    problems.add(`the scenario took longer than ${limitMs} ms`);
    gateway.kill('SIGKILL');
    upstream.kill();
  }, limitMs);
  stack.defer(() => clearTimeout(limit));
  const socketsAtStart = await openSockets(gateway.pid);
  await checkSessions(gateway.url, WARM_UP_CHECKS);
  const start = await memoryOf(gateway.pid);
  const figures = await work({ gateway, upstream, checksums, problems, socketsAtStart });
  // The upstream's own 503 passes through; any other warning is a problem.
  const log = gateway.errors().replaceAll(/^.*"outcome":503.*$/gm, '');
  if (log.trim()) problems.add(`the gateway's log: ${log.trim().slice(0, 300)}`);
  return { figures: { 'gateway MB at start': start.rssMb, ...figures }, problems: problems.list() };
}

/**
 * Checks a session over and over on one connection.
 *
 * @returns how long each check took, in milliseconds
 * @throws Error when a response is wrong
 */
export async function checkSessions(url: string, count: number): Promise<number[]> {
  const connection = await Connection.open(url);
  const durations: number[] = [];
  for (let index = 0; index < count; index++) {
    const before = performance.now();
    const request = signedIn(firstCookies('checker'), 'GET', '/api/auth/session');
    const { status, body } = await connection.send(request);
    durations.push(performance.now() - before);
    if (status !== 200 || body.toString() !== '{"user":"checker"}') {
      throw new Error(`a session check: ${status} ${body.toString().slice(0, 80)}`);
    }
  }
  connection.cut();
  return durations;
}
