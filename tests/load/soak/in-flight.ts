/** Many streams and generations in flight at once: what they cost, what others notice, and whether SIGTERM breaks one. */

import net from 'node:net';
import { eventually } from '../../support/eventually.ts';
import { isUp } from '../../support/is-up.ts';
import { memoryOf } from '../../support/process-status.ts';
import { RawConnection } from '../../support/raw-http.ts';
import { audioFor, halvesFor, sha256, TRACKS } from './content.ts';
import { percentile } from './outcome.ts';
import { type Pace, readTrack } from './read-track.ts';
import { type ClientRequest, exchange, generation, PROXY, signedIn } from './requests.ts';
import { firstCookies } from './rotating-sessions.ts';
import { checkSessions, type Rig, runScenario } from './scenario.ts';

/** A large track that its client reads slowly, one that the upstream sends slowly, a generation without a response. */
export type Waiting = 'reader' | 'body' | 'head';

export interface Load {
  readonly works: number;
  /** The works are of these kinds by turns. */
  readonly kinds: readonly [Waiting, ...Waiting[]];
  readonly trackBytes?: number;
  /** How fast a reader reads. Without it, it reads its first bytes and then waits for the release. */
  readonly bytesPerSecond?: number;
  /** Sends SIGTERM while all works are in flight. */
  readonly terminates?: boolean;
  /** Session checks before, and again while all works are in flight. */
  readonly checks: number;
  readonly limitMs: number;
}

interface Work {
  readonly kind: Waiting;
  readonly request: ClientRequest;
  readonly sha256: string;
}

/** A listener's queue takes no more connections at once. */
const OPENED_AT_ONCE = 100;

export function inFlight(load: Load) {
  return runScenario(load, async (rig) => {
    const { gateway, problems } = rig;
    const { works, terminates } = load;
    const before = await checkSessions(gateway.url, load.checks);
    // Its response is complete. The connection stays open, as a browser's would.
    const idle = new RawConnection(portOf(rig));
    await exchange(idle, signedIn(firstCookies('checker'), 'GET', '/api/auth/session'));
    const start = await memoryOf(gateway.pid);
    const started = await startWorks(load, rig);
    const waiting = await memoryOf(gateway.pid);
    const meanwhile = await checkSessions(gateway.url, load.checks);
    const early = load.bytesPerSecond ? 0 : started.complete();
    if (early > 0) problems.add(`${early} works did not wait for the release`);
    const refusedAfterMs = terminates ? await terminate(rig) : 0;
    await started.release();
    const { peakMb } = await memoryOf(gateway.pid).catch(() => waiting);
    const exitCode = terminates ? await gateway.exited : 0;
    if (exitCode !== 0) problems.add(`exit code ${exitCode}`);
    // No client closes its connection before the gateway has exited.
    idle.reset();
    for (const cut of started.cuts) cut();
    return {
      'works in flight': works,
      'works complete with the right bytes': started.complete(),
      'KB per work while all wait': Math.round(((waiting.rssMb - start.rssMb) * 1024) / works),
      'KB per work at peak': Math.round(((peakMb - start.rssMb) * 1024) / works),
      'p50 ms before': percentile(before, 0.5),
      'p99 ms before': percentile(before, 0.99),
      'p50 ms meanwhile': percentile(meanwhile, 0.5),
      'p99 ms meanwhile': percentile(meanwhile, 0.99),
      'ms until connections were refused': Math.round(refusedAfterMs),
    };
  });
}

/** Resolves when each work is in flight; `release` lets all of them end, and waits for that. */
async function startWorks({ works, kinds, bytesPerSecond }: Load, rig: Rig) {
  const { upstream, problems } = rig;
  const released = Promise.withResolvers<void>();
  const pace = (bytes: number) =>
    bytesPerSecond ? Bun.sleep((bytes / bytesPerSecond) * 1000) : released.promise;
  const cuts: (() => void)[] = [];
  const begun: Promise<void>[] = [];
  const ends: Promise<void>[] = [];
  let held = 0;
  let complete = 0;
  for (let index = 0; index < works; index++) {
    const work = workOf(kinds[index % kinds.length] ?? kinds[0], index, rig);
    const begin = Promise.withResolvers<void>();
    const { cut, received } = start(work, portOf(rig), begin.resolve, pace);
    const judged = received.then((checksum) => {
      if (checksum !== work.sha256) throw new Error(`${work.request.path}: other bytes than were sent`);
      complete++;
    });
    const end = problems.during(`work ${index}`, judged);
    // One that fails before it begins must not be waited for.
    if (work.kind !== 'head') begun.push(Promise.race([begin.promise, end]));
    if (work.kind !== 'reader') held++;
    cuts.push(cut);
    ends.push(end);
    if (index % OPENED_AT_ONCE === 0) await Promise.all([upstream.holds(held), ...begun]);
  }
  await Promise.all([upstream.holds(held), ...begun]);
  const release = async () => {
    released.resolve();
    upstream.release();
    await Promise.all(ends);
  };
  return { cuts, release, complete: () => complete };
}

/** @returns how long the gateway took to refuse new connections, in milliseconds */
async function terminate({ gateway }: Rig): Promise<number> {
  const signalledAt = performance.now();
  gateway.kill('SIGTERM');
  await eventually(async () => !(await isUp(gateway.url)), 'the gateway to refuse new connections');
  return performance.now() - signalledAt;
}

function workOf(kind: Waiting, index: number, { checksums }: Rig): Work {
  // No user has more in flight than a session may have.
  const cookie = firstCookies(`listener_${index}`);
  const get = (path: string) => signedIn(cookie, 'GET', `${PROXY}/music/${path}/content`);
  const track = index % TRACKS;
  const id = String(index);
  switch (kind) {
    case 'reader':
      return { kind, request: get(`creations/${track}`), sha256: checksums[track] ?? '' };
    case 'body':
      return { kind, request: get(`held/${id}`), sha256: sha256(...halvesFor(id)) };
    case 'head':
      return { kind, request: generation(cookie, 'hold', id), sha256: sha256(audioFor(id)) };
  }
}

/** Calls `begin` after the first bytes of the response, and reads a large track at its pace. */
function start(work: Work, port: number, begin: () => void, pace: Pace) {
  if (work.kind === 'reader') {
    const socket = net.connect({ port, host: '127.0.0.1' });
    const paced = (bytes: number) => {
      begin();
      return pace(bytes);
    };
    return { cut: () => socket.resetAndDestroy(), received: readTrack(socket, work.request, paced) };
  }
  const connection = new RawConnection(port);
  const received = exchange(connection, work.request, begin).then(({ status, body }) => {
    if (status !== 200) throw new Error(`status ${status}`);
    return sha256(Buffer.from(body, 'latin1'));
  });
  return { cut: () => connection.reset(), received };
}

function portOf({ gateway }: Rig): number {
  return Number(new URL(gateway.url).port);
}
