/** Many slow readers of large tracks at once: the gateway must hold none of what they have not read yet. */

import { ORIGIN } from '../../support/world.ts';
import { Connection } from './connection.ts';
import { TRACKS } from './content.ts';
import { type Outcome, Problems, percentile } from './outcome.ts';
import { memoryOf } from './process-status.ts';
import { startRig } from './rig.ts';
import { firstCookies } from './rotating-sessions.ts';
import { SessionChecks } from './session-checks.ts';

export interface SlowReaders {
  readonly readers: number;
  readonly trackBytes: number;
  /** How fast one reader reads. */
  readonly bytesPerSecond: number;
  readonly limitMs: number;
}

export async function slowReaders({ readers, trackBytes, bytesPerSecond, limitMs }: SlowReaders) {
  const problems = new Problems();
  await using rig = await startRig({ trackBytes, connections: readers + 1, limitMs });
  const { gateway, checksums } = rig;
  const checks = new SessionChecks(gateway.url, problems);
  await checks.make(20);
  const start = await memoryOf(gateway.pid);
  const before = performance.now();
  let whole = 0;
  const reading = Array.from({ length: readers }, async (_, index) => {
    const track = index % TRACKS;
    const checksum = await readSlowly(gateway.url, index, bytesPerSecond);
    if (checksum === checksums[track]) whole++;
    else problems.add(`reader ${index}: other bytes than those of track ${track}`);
  });
  const all = Promise.all(reading.map((each, index) => problems.during(`reader ${index}`, each)));
  const bare = checks.durations.splice(0);
  await checks.during(all);
  const seconds = (performance.now() - before) / 1000;
  if (gateway.errors()) problems.add(`the gateway's log: ${gateway.errors().slice(0, 300)}`);
  const { rssMb, peakMb } = await memoryOf(gateway.pid);
  return {
    figures: {
      readers,
      'MB per track': trackBytes / 1e6,
      'tracks with the right checksum': whole,
      seconds: Math.round(seconds),
      'MB/s in all': Math.round((whole * trackBytes) / 1e6 / seconds),
      'gateway MB at start': start.rssMb,
      'gateway MB at peak': peakMb,
      'gateway MB at end': rssMb,
      'KB per reader at peak': Math.round(((peakMb - start.rssMb) * 1024) / readers),
      'session checks meanwhile': checks.durations.length,
      'p50 ms before': percentile(bare, 0.5),
      'p50 ms': percentile(checks.durations, 0.5),
      'p99 ms': percentile(checks.durations, 0.99),
    },
    problems: problems.list(),
  } satisfies Outcome<Record<string, number>>;
}

/** SHA-256 of what came. */
async function readSlowly(url: string, index: number, bytesPerSecond: number): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256');
  const connection = await Connection.open(url);
  try {
    const { status } = await connection.send(
      {
        method: 'GET',
        path: `/api/upstream/v1/music/creations/${index % TRACKS}/content`,
        headers: { origin: ORIGIN, cookie: firstCookies(`listener_${index}`) },
      },
      {
        onBody: (piece) => void hash.update(piece),
        pace: (bytes) => Bun.sleep((bytes / bytesPerSecond) * 1000),
      },
    );
    if (status !== 200) throw new Error(`answered ${status}`);
    return hash.digest('hex');
  } finally {
    connection.cut();
  }
}
