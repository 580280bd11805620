/** SIGTERM while tracks are under way: the gateway takes nobody new, delivers every byte, and exits with 0. */

import { ORIGIN } from '../../support/world.ts';
import { type ClientRequest, Connection, type ReadOptions } from './connection.ts';
import { audioFor, halvesFor, TRACKS } from './content.ts';
import { type Outcome, Problems } from './outcome.ts';
import { memoryOf } from './process-status.ts';
import { type Rig, startRig } from './rig.ts';
import { firstCookies } from './rotating-sessions.ts';
import { SessionChecks } from './session-checks.ts';

export interface Drain {
  readonly tracks: number;
  readonly trackBytes: number;
  /** Connections that have had their answers and wait for nothing. */
  readonly idle: number;
  readonly limitMs: number;
}

/** One that is under way until `release`, and what must have come of it. */
interface Work {
  readonly request: ClientRequest;
  readonly sha256: string;
}

/** One of many users: none has more in flight than a session may have. */
function signedIn(index: number) {
  return { origin: ORIGIN, cookie: firstCookies(`listener_${index}`) };
}

export async function drain({ tracks, trackBytes, idle, limitMs }: Drain) {
  const problems = new Problems();
  let delivered = 0;
  await using rig = await startRig({ trackBytes, connections: tracks + idle + 1, limitMs });
  const { gateway, upstream } = rig;
  await new SessionChecks(gateway.url, problems).make(5);
  const start = await memoryOf(gateway.pid);
  // None is closed by its client before the gateway has gone, as a browser's would not be either.
  const connections = await Promise.all(
    Array.from({ length: tracks + idle }, () => Connection.open(gateway.url)),
  );
  for (const connection of connections.slice(tracks)) {
    await connection.send({ method: 'GET', path: '/api/auth/session', headers: signedIn(0) });
  }
  const released = Promise.withResolvers<void>();
  const begun = connections.slice(0, tracks).map((connection, index) => {
    const { request, sha256 } = workOf(index, rig);
    const begin = Promise.withResolvers<void>();
    const reading = read(connection, request, begin.resolve, released.promise).then((received) => {
      if (received !== sha256) throw new Error(`${request.path}: other bytes than were sent`);
      delivered++;
    });
    const end = problems.during(`work ${index}`, reading);
    // One that fails before it begins must not be waited for.
    return { begin: Promise.race([begin.promise, end]), end };
  });
  await upstream.holds(begun.filter((_, index) => index % 3 !== 0).length);
  await Promise.all(begun.map(({ begin }, index) => (isHeldWhole(index) ? undefined : begin)));

  const signalled = performance.now();
  gateway.kill('SIGTERM');
  const refusedAfterMs = await untilRefused(gateway.url, signalled);
  if (delivered > 0) problems.add(`${delivered} works were not under way at the signal`);
  const peak = await memoryOf(gateway.pid);
  released.resolve();
  await upstream.release();
  await Promise.all(begun.map(({ end }) => end));
  const deliveredAt = performance.now();
  const exitCode = await gateway.exited;
  const exitedAfterMs = performance.now() - deliveredAt;
  for (const connection of connections) connection.cut();
  if (exitCode !== 0) problems.add(`exit code ${exitCode}`);
  if (gateway.errors()) problems.add(`the gateway's log: ${gateway.errors().slice(0, 300)}`);
  return {
    figures: {
      'under way at SIGTERM': tracks,
      'MB per track': trackBytes / 1e6,
      'idle connections besides': idle,
      'delivered whole': delivered,
      'exit code': exitCode,
      'ms until connections were refused': Math.round(refusedAfterMs),
      'ms from the last byte to the exit': Math.round(exitedAfterMs),
      'gateway MB at start': start.rssMb,
      'gateway MB at peak, before the last track went on': peak.peakMb,
    },
    problems: problems.list(),
  } satisfies Outcome<Record<string, number>>;
}

/** By turns a large track whose reader stops, one whose upstream stops, and a generation without headers yet. */
function workOf(index: number, { checksums }: Rig): Work {
  const headers = signedIn(index);
  if (isHeldWhole(index)) {
    const key = `generation-${index}`;
    return {
      request: {
        method: 'POST',
        path: '/api/music/generate',
        headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify({ model: 'composer-1', prompt: 'hold', music_length_ms: 30_000 }),
      },
      sha256: sha256(audioFor(key)),
    };
  }
  if (index % 3 === 1) {
    const path = `/api/upstream/v1/music/held/${index}/content`;
    return { request: { method: 'GET', path, headers }, sha256: sha256(...halvesFor(String(index))) };
  }
  const track = index % TRACKS;
  const path = `/api/upstream/v1/music/creations/${track}/content`;
  return { request: { method: 'GET', path, headers }, sha256: checksums[track] ?? '' };
}

function isHeldWhole(index: number): boolean {
  return index % 3 === 2;
}

function isHeld({ path }: ClientRequest): boolean {
  return !path.includes('/creations/');
}

/** Reads the first bytes, says so, and reads the rest when it is released; SHA-256 of all. */
async function read(
  connection: Connection,
  request: ClientRequest,
  begin: () => void,
  released: Promise<void>,
): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256');
  const options: ReadOptions = {
    onBody: (piece) => void hash.update(piece),
    pace: () => {
      begin();
      return isHeld(request) ? Promise.resolve() : released;
    },
  };
  const { status } = await connection.send(request, options);
  if (status !== 200) throw new Error(`answered ${status}`);
  return hash.digest('hex');
}

/** Milliseconds since the signal. */
async function untilRefused(url: string, signalled: number): Promise<number> {
  for (;;) {
    try {
      (await Connection.open(url)).cut();
    } catch {
      return performance.now() - signalled;
    }
    await Bun.sleep(2);
  }
}

function sha256(...pieces: Buffer[]): string {
  const hash = new Bun.CryptoHasher('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}
