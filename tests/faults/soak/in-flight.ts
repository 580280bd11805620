/** Many streams and generations in flight at once: what they cost, what others notice, and whether SIGTERM breaks one. */

import { eventually } from '../../support/eventually.ts';
import { type ClientRequest, Connection } from './connection.ts';
import { audioFor, halvesFor, sha256, TRACKS } from './content.ts';
import { percentile } from './outcome.ts';
import { memoryOf } from './process-status.ts';
import { generation, PROXY, signedIn } from './requests.ts';
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
    const idle = await Connection.open(gateway.url);
    await idle.send(signedIn(firstCookies('checker'), 'GET', '/api/auth/session'));
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
    for (const connection of [idle, ...started.connections]) connection.cut();
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
  const { gateway, upstream, problems } = rig;
  const released = Promise.withResolvers<void>();
  const pace = (bytes: number) =>
    bytesPerSecond ? Bun.sleep((bytes / bytesPerSecond) * 1000) : released.promise;
  const connections: Connection[] = [];
  const begun: Promise<void>[] = [];
  const ends: Promise<void>[] = [];
  let held = 0;
  let complete = 0;
  for (let index = 0; index < works; index++) {
    const work = workOf(kinds[index % kinds.length] ?? kinds[0], index, rig);
    const connection = await Connection.open(gateway.url);
    const begin = Promise.withResolvers<void>();
    const reading = read(connection, work, begin.resolve, pace).then(() => void complete++);
    const end = problems.during(`work ${index}`, reading);
    // One that fails before it begins must not be waited for.
    if (work.kind !== 'head') begun.push(Promise.race([begin.promise, end]));
    if (work.kind !== 'reader') held++;
    connections.push(connection);
    ends.push(end);
    if (index % OPENED_AT_ONCE === 0) await upstream.holds(held);
  }
  await Promise.all([upstream.holds(held), ...begun]);
  const release = async () => {
    released.resolve();
    await upstream.release();
    await Promise.all(ends);
  };
  return { connections, release, complete: () => complete };
}

/** @returns how long the gateway took to refuse new connections, in milliseconds */
async function terminate({ gateway }: Rig): Promise<number> {
  const signalledAt = performance.now();
  gateway.kill('SIGTERM');
  const refuses = () =>
    Connection.open(gateway.url).then(
      (connection) => connection.cut(),
      () => true,
    );
  await eventually(refuses, 'the gateway to refuse new connections');
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

/** Calls `begin` after the first bytes, and reads the rest of a large track at its pace. */
async function read(
  connection: Connection,
  work: Work,
  begin: () => void,
  pace: (bytes: number) => Promise<void>,
): Promise<void> {
  const hash = new Bun.CryptoHasher('sha256');
  const { status } = await connection.send(work.request, {
    onBody: (piece) => void hash.update(piece),
    pace: (bytes) => {
      begin();
      return work.kind === 'reader' ? pace(bytes) : Promise.resolve();
    },
  });
  if (status !== 200) throw new Error(`status ${status}`);
  if (hash.digest('hex') !== work.sha256) throw new Error(`${work.request.path}: other bytes than were sent`);
}
