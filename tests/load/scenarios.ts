/** What `bun run soak` runs, and what its figures may be. */

import { runOne, runTwo } from './in-service.ts';
import { reservedBesideCharged } from './ledger.ts';
import type { Report } from './report.ts';
import { ALL_AT_ONCE, LONG_ATTACKS } from './siege/attacks.ts';
import { type Load, runStreams } from './streams.ts';
import { runThroughput } from './throughput.ts';
import type { Works } from './works.ts';

export interface Scenario {
  readonly run: () => Promise<Report>;
  /** A larger figure is wrong. Limits are far above what was measured, and far below what a fault costs. */
  readonly most?: Readonly<Record<string, number>>;
  /** A smaller one is. */
  readonly least?: Readonly<Record<string, number>>;
}

/** Longer than the buffers of the kernel, and than what a generation that is heard has in all. */
const TRACK_BYTES = 10_000_000;
const GROWTH = { 'most MB that an instance gained': 20, 'most files that an instance gained': 20 };
const MUSIC_IN_TIME = { 'ms until newcomers hear something': 2000 };
/** Until a player counts as stopped. */
const STOPPED_SECONDS = 15;
const USERS: Works = { newPlayer: 5, paid: 5 };
/** Strangers make room for strangers; users never do. */
const STRANGERS: Works = { newPublicPlayer: 5, ...USERS };

/** Work in the memory of a container; all that must be whole is. */
function inMemory(memoryMb: number, load: Omit<Load, 'memoryMb'>, bounds: Omit<Scenario, 'run'>): Scenario {
  return { run: () => runStreams({ trackBytes: TRACK_BYTES, memoryMb, ...load }), ...bounds };
}

/** Generations that are heard while they are made: peak and session checks are what users notice. */
function heard(works: Works): Scenario {
  return inMemory(256, { works, seconds: 19 }, { most: { 'MB at peak': 200, 'p99 ms meanwhile': 50 } });
}

/** Players that have stopped with full buffers, and read on at once: so many are served. */
function audience(memoryMb: number, works: Works, least: Scenario['least'], mostMb = memoryMb): Scenario {
  const load = { works, newcomers: { paid: 5 }, seconds: 3 };
  return inMemory(memoryMb, load, { ...(least ? { least } : {}), most: { 'MB at peak': mostMb } });
}

/** Those who have stopped make room for those who come. */
function madeRoom(stopped: Works, newcomers: Works = USERS): Scenario {
  return inMemory(256, { works: stopped, newcomers, seconds: STOPPED_SECONDS }, { most: MUSIC_IN_TIME });
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'slow-readers': {
    run: () => runStreams({ works: { reader: 500 }, trackBytes: TRACK_BYTES, seconds: 5 }),
    most: { 'p99 ms meanwhile': 1000 },
  },
  heard: heard({ heard: 1000 }),
  'heard-beside-stopped': heard({ unheard: 100, heard: 400 }),
  'heard-fast': heard({ heardFast: 300 }),
  steady: inMemory(256, { works: { steady: 12 }, seconds: 130, trackBytes: 16_000_000 }, {}),
  listeners: audience(256, { player: 400 }, { 'player whole': 380 }),
  'public-listeners': audience(256, { publicPlayer: 330 }, { 'publicPlayer whole': 320 }),
  'too-many-listeners': audience(256, { player: 1000 }, { 'player whole': 220 }, 240),
  'listeners-512': audience(512, { player: 900 }, { 'player whole': 700 }),
  'listeners-1024': audience(1024, { player: 1900 }, { 'player whole': 1500 }),
  'room-of-strangers': madeRoom({ publicPlayer: 700 }, STRANGERS),
  'room-of-one-user': madeRoom({ tenfoldPlayer: 900 }),
  'room-beside-a-reader': madeRoom({ publicListener: 5, publicPlayer: 700 }, STRANGERS),
  'waiting-generations': {
    run: () => runStreams({ works: { head: 4000 }, seconds: 5 }),
    most: { 'p99 ms meanwhile': 500 },
  },
  'thousand-players': inMemory(256, LONG_ATTACKS['thousand-players'], {}),
  'tiny-chunks': inMemory(256, LONG_ATTACKS['tiny-chunks'], {}),
  'dead-generations': inMemory(256, LONG_ATTACKS['dead-generations'], {}),
  'ten-sign-ins': inMemory(256, LONG_ATTACKS['ten-sign-ins'], {}),
  'all-attacks': inMemory(256, ALL_AT_ONCE, {}),
  checks: inMemory(
    256,
    { works: { check: 4000 }, seconds: 0, atOnce: 4000 },
    { least: { 'check whole': 4000 } },
  ),
  throughput: {
    run: () => runThroughput(2000, 3),
    least: { 'session checks per second': 7000 },
    most: { 'refused with 503': 0 },
  },
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
