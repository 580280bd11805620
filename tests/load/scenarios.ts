/** What `bun run soak` runs, and what its figures may be. */

import { runOne, runTwo } from './in-service.ts';
import { reservedBesideCharged } from './ledger.ts';
import type { Report } from './report.ts';
import { LONG_ATTACKS } from './siege/attacks.ts';
import { type Load, runStreams } from './streams.ts';
import type { Works } from './works.ts';

export interface Scenario {
  readonly run: () => Promise<Report>;
  /** A larger figure is wrong. Limits are far above what was measured, and far below what a fault costs. */
  readonly most?: Readonly<Record<string, number>> | undefined;
  /** A smaller one is. */
  readonly least?: Readonly<Record<string, number>> | undefined;
}

/** Longer than the buffers of the kernel, and than what a generation that is heard has in all. */
const TRACK_BYTES = 10_000_000;
const GROWTH = { 'most MB that an instance gained': 20, 'most files that an instance gained': 20 };
const WAITING = { most: { 'p99 ms meanwhile': 500 } };
/** Until a player counts as stopped. */
const STOPPED_SECONDS = 15;
const USERS: Works = { newPlayer: 5, paid: 5 };
/** Strangers make room for strangers; users never do. */
const STRANGERS: Works = { newPublicPlayer: 5, ...USERS };

/** All that must be whole is, and a gateway with a limit survives. */
function streams(load: Load, bounds: Omit<Scenario, 'run'> = {}): Scenario {
  return { run: () => runStreams({ trackBytes: TRACK_BYTES, ...load }), ...bounds };
}

/** Generations that are heard while they are made: peak and session checks are what users notice. */
function heard(works: Works): Scenario {
  const most = { 'MB at peak': 200, 'p99 ms meanwhile': 50 };
  return streams({ works, seconds: 19, memoryMb: 256 }, { most });
}

/** Players that have stopped with full buffers, and read on at once: so many are served. */
function audience(memoryMb: number, works: Works, least: Scenario['least'], mostMb = memoryMb): Scenario {
  const load = { works, newcomers: { paid: 5 }, seconds: 3, memoryMb };
  return streams(load, { least, most: { 'MB at peak': mostMb } });
}

/** Those who have stopped make room for those who come. */
function madeRoom(works: Works, newcomers: Works = USERS): Scenario {
  const most = { 'ms until newcomers hear something': 2000 };
  return streams({ works, newcomers, seconds: STOPPED_SECONDS, memoryMb: 256 }, { most });
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'slow-readers': streams({ works: { reader: 500 }, seconds: 5 }, { most: { 'p99 ms meanwhile': 1000 } }),
  heard: heard({ heard: 1000 }),
  'heard-beside-stopped': heard({ unheard: 100, heard: 400 }),
  'heard-fast': heard({ heardFast: 300 }),
  steady: streams({ works: { steady: 12 }, seconds: 130, trackBytes: 16_000_000, memoryMb: 256 }),
  listeners: audience(256, { player: 400 }, { 'player whole': 380 }),
  'public-listeners': audience(256, { publicPlayer: 330 }, { 'publicPlayer whole': 320 }),
  'too-many-listeners': audience(256, { player: 1000 }, { 'player whole': 220 }, 240),
  'listeners-512': audience(512, { player: 900 }, { 'player whole': 700 }),
  'listeners-1024': audience(1024, { player: 1900 }, { 'player whole': 1500 }),
  'room-of-strangers': madeRoom({ publicPlayer: 700 }, STRANGERS),
  'room-of-one-user': madeRoom({ tenfoldPlayer: 900 }),
  'room-beside-a-reader': madeRoom({ publicListener: 5, publicPlayer: 700 }, STRANGERS),
  'waiting-generations': streams({ works: { head: 4000 }, seconds: 5 }, WAITING),
  ...Object.fromEntries(Object.entries(LONG_ATTACKS).map(([name, load]) => [name, streams(load)])),
  ledger: { run: reservedBesideCharged },
  'one-instance': {
    run: () =>
      runOne({
        seconds: 180,
        memoryMb: 256,
        trackMs: 60_000,
        attendance: { visitor: 100, author: 5, slowReader: 10, hurried: 60 },
      }),
    most: GROWTH,
  },
};

/** Two instances, for so many minutes. */
export function twoInstances(minutes: number): Scenario {
  const run = () =>
    runTwo({
      seconds: minutes * 60,
      redisSeconds: 300,
      upstreamSeconds: 420,
      upgradeSeconds: 1200,
      trackMs: 180_000,
      attendance: { visitor: 16, author: 5, slowReader: 8, hurried: 8 },
    });
  return { run, most: GROWTH };
}
