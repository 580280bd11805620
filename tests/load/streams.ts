/** Many bodies in flight at once: what they cost, what others notice, and who is refused. */

import { memoryOf } from './process-status.ts';
import { checksumOf, cookieOf, openSocket, orderOf, requestOf } from './raw-client.ts';
import { Problems, percentile, type Report } from './report.ts';
import { checkSessions, startRig } from './rig.ts';
import { piecesFor, TRACKS, tracksOf } from './upstream.ts';

/**
 * `reader` and `player` stop after the first bytes of a track, which the gateway asks for as a whole or in slices. The
 * upstream stops before the `head` of a generation. A `paid` generation streams for a second.
 */
const KINDS = ['reader', 'player', 'head', 'paid'] as const;
type Kind = (typeof KINDS)[number];

export interface Load {
  /** How many there are of each. */
  readonly works: Readonly<Partial<Record<Kind, number>>>;
  readonly trackBytes?: number;
  /** With it, the gateway may refuse readers and players. */
  readonly memoryMb?: number;
  /** How fast each one reads, once all of them are there. */
  readonly bytesPerSecond?: number;
  /** Session checks while all works are in flight. */
  readonly checks: number;
}

/** A listener's queue takes no more connections at once. */
const OPENED_AT_ONCE = 100;
/** After this time the allocator has returned what the first slices took. */
const SETTLE_MS = 3000;
const REFUSAL = /HTTP\/1.1 503 .*\r\nretry-after: 5\r\n/is;

export async function runStreams({ works, checks, bytesPerSecond, ...options }: Load): Promise<Report> {
  await using rig = await startRig(options);
  const { gateway } = rig;
  const problems = new Problems();
  // What they cost once belongs to no work.
  await checkSessions(gateway.url, checks);
  const start = await memoryOf(gateway.pid);
  const checksums = tracksOf(options.trackBytes ?? 0).map((track) => sha256(track));
  const released = Promise.withResolvers<void>();
  const planned = KINDS.flatMap((kind) =>
    Array.from({ length: works[kind] ?? 0 }, (_, index) => ({ kind, index })),
  );
  const all: Work[] = [];
  while (all.length < planned.length) {
    const some = planned
      .slice(all.length, all.length + OPENED_AT_ONCE)
      .map((each) => begin(each, gateway.url, checksums, released.promise, bytesPerSecond));
    all.push(...some);
    // Each is in flight, or was refused.
    const heads = all.filter(({ kind }) => kind === 'head').length;
    await Promise.all([rig.holds(heads), ...some.map(({ begun }) => begun)]);
  }
  const waiting = all.filter(({ kind, state }) => kind !== 'paid' && state === 'in flight').length;
  const meanwhile = await checkSessions(gateway.url, checks);
  if (options.memoryMb !== undefined) await Bun.sleep(SETTLE_MS);
  const stopped = await memoryOf(gateway.pid);
  released.resolve();
  await rig.release();
  await Promise.all(all.map((work) => work.ended));
  const { peakMb } = await memoryOf(gateway.pid);
  for (const { socket } of all) socket.resetAndDestroy();
  const isRefusal = ({ isTrack, state }: Work) =>
    options.memoryMb !== undefined && isTrack && REFUSAL.test(state);
  for (const work of all)
    if (work.state !== 'complete' && !isRefusal(work)) problems.add(`${work.kind}: ${work.state}`);
  const log = gateway.errors().replaceAll(/^.*"status":503,.*"reason":"overloaded".*$/gm, '');
  if (log.trim()) problems.add(`the gateway's log: ${log.trim().slice(0, 300)}`);
  const kbPerWork = (mb: number) => Math.round(((mb - start.rssMb) * 1024) / Math.max(1, waiting));
  return {
    figures: {
      'waiting at once': waiting,
      'refused with 503': all.filter(isRefusal).length,
      'complete with the right bytes': all.filter(({ state }) => state === 'complete').length,
      'KB per work while all wait': kbPerWork(stopped.rssMb),
      'KB per work at peak': kbPerWork(peakMb),
      'p50 ms meanwhile': percentile(meanwhile, 0.5),
      'p99 ms meanwhile': percentile(meanwhile, 0.99),
    },
    problems: problems.list(),
  };
}

type Work = ReturnType<typeof begin>;

/** @param released when it resolves, a track is read on */
function begin(
  { kind, index }: { readonly kind: Kind; readonly index: number },
  url: string,
  checksums: readonly string[],
  released: Promise<void>,
  bytesPerSecond = Number.POSITIVE_INFINITY,
) {
  const isTrack = kind === 'reader' || kind === 'player';
  // No user has more in flight than a session may have.
  const user = `${kind}-${index}`;
  const track = index % TRACKS;
  const path = `/api/upstream/v1/music/${kind === 'player' ? 'ranged' : 'creations'}/${track}/content`;
  const range = kind === 'player' ? { range: 'bytes=0-' } : {};
  const request = isTrack
    ? requestOf(`GET ${path}`, { ...cookieOf(user), ...range })
    : orderOf(kind, user, user);
  const expected = isTrack ? checksums[track] : sha256(...piecesFor(user));
  const first = Promise.withResolvers<void>();
  const socket = openSocket(new URL(url));
  const received = checksumOf(socket, request, async (bytes) => {
    first.resolve();
    if (isTrack) await released;
    await Bun.sleep((bytes / bytesPerSecond) * 1000);
  });
  const work = {
    ...{ kind, isTrack, socket },
    /** `in flight`, `complete`, or why it is neither. */
    state: 'in flight',
    /** The first bytes of a track have arrived, or its end. */
    begun: Promise.resolve(),
    ended: received.then(
      (checksum) => {
        work.state = checksum === expected ? 'complete' : 'other bytes than were sent';
      },
      (error) => {
        work.state = error.message;
      },
    ),
  };
  if (isTrack) work.begun = Promise.race([first.promise, work.ended]);
  return work;
}

function sha256(...pieces: readonly Uint8Array[]): string {
  const hash = new Bun.CryptoHasher('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}
