/** Many bodies in flight at once: what they cost, what others notice, who is refused, and whether SIGTERM breaks one. */

import { eventually } from '../support/eventually.ts';
import { isUp } from '../support/is-up.ts';
import { memoryOf } from './process-status.ts';
import { checksumOf, cookieOf, openSocket, orderOf, requestOf } from './raw-client.ts';
import { Problems, percentile, type Report } from './report.ts';
import { checkSessions, type Rig, startRig } from './rig.ts';
import { halvesFor, piecesFor, sha256, TRACKS } from './upstream.ts';

/**
 * `reader` and `player` stop after the first bytes of a track, which the gateway asks for as a whole or in slices. The
 * upstream stops in the midst of a `body`, and before the `head` of a generation. A `paid` generation streams for
 * a second.
 */
const KINDS = ['reader', 'player', 'body', 'head', 'paid'] as const;
type Kind = (typeof KINDS)[number];

export interface Load {
  /** How many there are of each. */
  readonly works: Readonly<Partial<Record<Kind, number>>>;
  readonly trackBytes?: number;
  /** With it, the gateway may refuse readers and players. */
  readonly memoryMb?: number;
  /** How fast each one reads, once all of them are there. */
  readonly bytesPerSecond?: number;
  /** Sends SIGTERM while all works are in flight. */
  readonly terminates?: boolean;
  /** Session checks before, and again while all works are in flight. */
  readonly checks: number;
}

/** A listener's queue takes no more connections at once. */
const OPENED_AT_ONCE = 100;
/** After this time the allocator has returned what the first slices took. */
const SETTLE_MS = 3000;
const REFUSAL = /HTTP\/1.1 503 .*\r\nretry-after: 5\r\n/is;

export async function runStreams(load: Load): Promise<Report> {
  await using rig = await startRig(load);
  const { gateway } = rig;
  const problems = new Problems();
  const before = await checkSessions(gateway, load.checks);
  const start = await memoryOf(gateway.pid);
  const works = KINDS.flatMap((kind) =>
    Array.from({ length: load.works[kind] ?? 0 }, (_, index) => new Work(kind, index, rig)),
  );
  await beginAll(works, rig, load.bytesPerSecond);
  const waiting = works.filter(({ kind, state }) => kind !== 'paid' && state === 'in flight').length;
  const meanwhile = await checkSessions(gateway, load.checks);
  if (load.memoryMb !== undefined) await Bun.sleep(SETTLE_MS);
  const stopped = await memoryOf(gateway.pid);
  const refusedAfterMs = load.terminates ? await terminate(rig) : 0;
  for (const work of works) work.release();
  await rig.upstream.release();
  await Promise.all(works.map((work) => work.ended));
  const { peakMb } = await memoryOf(gateway.pid).catch(() => stopped);
  if (load.terminates) {
    const exitCode = await gateway.exited;
    if (exitCode !== 0) problems.add(`exit code ${exitCode}`);
  }
  // No client closes its connection before the gateway has exited.
  for (const work of works) work.cut();
  const isRefusal = (work: Work) => load.memoryMb !== undefined && work.isTrack && REFUSAL.test(work.state);
  const refused = works.filter(isRefusal).length;
  for (const work of works) if (work.state !== 'complete' && !isRefusal(work)) problems.add(work.story);
  const log = gateway.errors().replaceAll(/^.*"status":503,.*"reason":"overloaded".*$/gm, '');
  if (log.trim()) problems.add(`the gateway's log: ${log.trim().slice(0, 300)}`);
  const kbPerWork = (mb: number) => Math.round(((mb - start.rssMb) * 1024) / Math.max(1, waiting));
  return {
    figures: {
      'gateway MB at start': start.rssMb,
      'waiting at once': waiting,
      'refused with 503': refused,
      'complete with the right bytes': works.filter(({ state }) => state === 'complete').length,
      'KB per work while all wait': kbPerWork(stopped.rssMb),
      'KB per work at peak': kbPerWork(peakMb),
      'p50 ms before': percentile(before, 0.5),
      'p99 ms before': percentile(before, 0.99),
      'p50 ms meanwhile': percentile(meanwhile, 0.5),
      'p99 ms meanwhile': percentile(meanwhile, 0.99),
      'ms until connections were refused': Math.round(refusedAfterMs),
    },
    problems: problems.list(),
  };
}

/** Resolves when each of them is in flight, or was refused. */
async function beginAll(
  works: readonly Work[],
  { upstream }: Rig,
  bytesPerSecond = Number.POSITIVE_INFINITY,
) {
  let held = 0;
  for (let opened = 0; opened < works.length; opened += OPENED_AT_ONCE) {
    const some = works.slice(opened, opened + OPENED_AT_ONCE);
    for (const work of some) work.begin(bytesPerSecond);
    held += some.filter(({ isHeld }) => isHeld).length;
    await Promise.all([upstream.holds(held), ...some.map(({ begun }) => begun)]);
  }
}

class Work {
  /** `in flight`, `complete`, or why it is neither. */
  state = 'in flight';
  readonly kind: Kind;
  /** Its first bytes have arrived, or its end. */
  begun: Promise<void> = Promise.resolve();
  ended: Promise<void> = Promise.resolve();
  readonly #request: string;
  readonly #sha256: string;
  readonly #socket: ReturnType<typeof openSocket>;
  readonly #released = Promise.withResolvers<void>();

  constructor(kind: Kind, index: number, { gateway, checksums }: Rig) {
    this.kind = kind;
    this.#socket = openSocket(new URL(gateway.url));
    // No user has more in flight than a session may have.
    const user = `${kind}-${index}`;
    const get = (path: string, headers = {}) =>
      requestOf(`GET /api/upstream/v1/music/${path}/content`, { ...cookieOf(user), ...headers });
    const track = index % TRACKS;
    switch (kind) {
      case 'reader':
      case 'player':
        this.#request =
          kind === 'reader' ? get(`creations/${track}`) : get(`ranged/${track}`, { range: 'bytes=0-' });
        this.#sha256 = checksums[track] ?? '';
        break;
      case 'body':
        this.#request = get(`held/${user}`);
        this.#sha256 = sha256(...halvesFor(user));
        break;
      case 'head':
      case 'paid':
        this.#request = orderOf(kind === 'head' ? 'hold' : 'paid', user, user);
        this.#sha256 = sha256(...piecesFor(user));
    }
  }

  get isTrack(): boolean {
    return this.kind === 'reader' || this.kind === 'player';
  }

  /** Whether the upstream lets it wait. */
  get isHeld(): boolean {
    return this.kind === 'head' || this.kind === 'body';
  }

  get story(): string {
    return `${this.kind}: ${this.state} (${this.#request.split('\r\n')[0]})`;
  }

  begin(bytesPerSecond: number): void {
    const first = Promise.withResolvers<void>();
    const pace = async (bytes: number) => {
      first.resolve();
      if (this.isTrack) await this.#released.promise;
      await Bun.sleep((bytes / bytesPerSecond) * 1000);
    };
    this.ended = checksumOf(this.#socket, this.#request, pace).then(
      (checksum) => {
        this.state = checksum === this.#sha256 ? 'complete' : 'other bytes than were sent';
      },
      (error) => {
        this.state = error.message;
      },
    );
    if (this.isTrack) this.begun = Promise.race([first.promise, this.ended]);
  }

  release(): void {
    this.#released.resolve();
  }

  cut(): void {
    this.#socket.resetAndDestroy();
  }
}

/** @returns how long the gateway took to refuse new connections, in milliseconds */
async function terminate({ gateway }: Rig): Promise<number> {
  const signalledAt = performance.now();
  gateway.kill('SIGTERM');
  await eventually(async () => !(await isUp(gateway.url)), 'the gateway to refuse new connections');
  return performance.now() - signalledAt;
}
