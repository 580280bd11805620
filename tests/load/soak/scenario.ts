/** What every scenario needs: a gateway and an upstream, each a process of its own, tracks, and session checks. */

import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { openMemoryCgroup } from '../../support/memory-cgroup.ts';
import { memoryOf, openSocketsOf } from '../../support/process-status.ts';
import { RawConnection } from '../../support/raw-http.ts';
import { makeTracks } from './content.ts';
import { type Figures, type Outcome, Problems } from './outcome.ts';
import { exchange, signedIn } from './requests.ts';
import { firstCookies } from './rotating-sessions.ts';
import { Upstream } from './upstream.ts';

export interface ScenarioOptions {
  readonly trackBytes?: number;
  /** How often an access token can be used; without end by default. */
  readonly usesPerToken?: number;
  /** How long the upstream leaves a silent connection open; longer than any scenario by default. */
  readonly upstreamIdleSeconds?: number;
  /** The memory of the gateway's container; without a limit by default. */
  readonly memoryBytes?: number;
  /** Whether the gateway may refuse requests for want of memory. */
  readonly refuses?: boolean;
  /** After this time the gateway is killed, and the scenario fails. */
  readonly limitMs: number;
}

export interface Rig {
  readonly gateway: GatewayProcess;
  readonly upstream: Upstream;
  /** SHA-256 of each track. */
  readonly checksums: readonly string[];
  readonly problems: Problems;
  /** The gateway's sockets before any request. */
  readonly socketsAtStart: number;
}

const WARM_UP_CHECKS = 10;

/** @param work sends the load and returns its figures */
export async function runScenario(
  {
    trackBytes = 0,
    usesPerToken = 0,
    upstreamIdleSeconds = 255,
    memoryBytes,
    refuses = false,
    limitMs,
  }: ScenarioOptions,
  work: (rig: Rig) => Promise<Figures>,
): Promise<Outcome<Figures>> {
  const problems = new Problems();
  await using stack = new AsyncDisposableStack();
  const tracks = trackBytes ? makeTracks(trackBytes) : [];
  const served = tracks.map(({ track }) => track);
  const upstream = stack.use(
    new Upstream({ tracks: served, usesPerToken, idleSeconds: upstreamIdleSeconds }),
  );
  const cgroup = memoryBytes === undefined ? undefined : await openMemoryCgroup(memoryBytes);
  if (memoryBytes !== undefined && !cgroup)
    return { figures: {}, problems: ['no memory cgroup can be made'] };
  if (cgroup) stack.use(cgroup);
  const settings = { UPSTREAM_URL: upstream.url };
  const gateway = stack.use(await startGatewayProcess(settings, undefined, cgroup?.prefix));
  // An interrupted run skips the disposal.
  const onExit = () => gateway.kill('SIGKILL');
  process.once('exit', onExit);
  stack.defer(() => void process.off('exit', onExit));
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    problems.add(`the scenario took longer than ${limitMs} ms`);
    gateway.kill('SIGKILL');
  }, limitMs);
  stack.defer(() => clearTimeout(limit));
  const socketsAtStart = await openSocketsOf(gateway.pid);
  await checkSessions(gateway.url, WARM_UP_CHECKS);
  const start = await memoryOf(gateway.pid);
  const checksums = tracks.map(({ checksum }) => checksum);
  const figures = await work({ gateway, upstream, checksums, problems, socketsAtStart }).catch((error) => {
    // Whatever fails because the gateway was killed would hide why it was.
    if (isLate) return {};
    throw error;
  });
  // The upstream's own 503 passes through; any other warning is a problem.
  const log = gateway
    .errors()
    .replaceAll(/^.*"outcome":503.*$/gm, '')
    .replaceAll(refuses ? /^.*"status":503,.*"reason":"overloaded".*$/gm : /$^/g, '');
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
  const connection = new RawConnection(Number(new URL(url).port));
  const durations: number[] = [];
  for (let index = 0; index < count; index++) {
    const before = performance.now();
    const request = signedIn(firstCookies('checker'), 'GET', '/api/auth/session');
    const { status, body } = await exchange(connection, request);
    durations.push(performance.now() - before);
    if (status !== 200 || body !== '{"user":"checker"}') {
      throw new Error(`a session check: ${status} ${body.slice(0, 80)}`);
    }
  }
  connection.reset();
  return durations;
}
