/** The long form of the load tests, with figures: `bun run soak -t heard-fast` for one scenario. */

import { expect, it } from 'bun:test';
import { runOne, runTwo } from './in-service.ts';
import { runMove } from './moved-upstream.ts';
import type { Report } from './report.ts';
import { type Load, runStreams } from './streams.ts';
import type { Works } from './works.ts';

interface Scenario {
  readonly run: () => Promise<Report>;
  /** A larger figure is wrong. Limits are far above what was measured, and far below what a fault costs. */
  readonly most?: Readonly<Record<string, number>>;
  /** A smaller one is. */
  readonly least?: Readonly<Record<string, number>>;
}

/** Longer than the buffers of the kernel, and than what a generation that is heard has in all. */
const TRACK_BYTES = 10_000_000;
const GROWTH = { 'most MB that an instance gained': 20, 'most files that an instance gained': 20 };
const MANY = { visitor: 100, author: 5, slowReader: 10, hurried: 60 };
/** Until a player counts as stopped, and gives way: one of a stranger, and one of a user. */
const STOPPED_SECONDS = { ofStranger: 15, ofUser: 35 };
const USERS: Works = { newPlayer: 5, paid: 5 };
const DEAD_GENERATIONS: Works = { publicPlayer: 458, deadGeneration: 27 };
const TEN_SIGN_INS: Works = { tenfoldPlayer: 535, tenfoldGeneration: 18, stalledBody: 383, refresh: 351 };
const ALL_ATTACKS: Works = {
  ...{ ...DEAD_GENERATIONS, ...TEN_SIGN_INS },
  ...{ sixfoldPlayer: 494, player: 1000, chunkedBody: 28, largeBody: 22, longHead: 1000 },
};
/** More than there is room for, or than can be in flight. */
const MOST: Works = {
  ...{ player: 700, reader: 100, stoppedGeneration: 100, largeBody: 22 },
  ...{ chunkedBody: 200, refresh: 20_000, call: 4000, longHead: 4000 },
  ...{ unreadUpload: 100, stoppedUpload: 100 },
};
/** The others leave memory to spare, and then a peak is garbage. */
const FILLS_MEMORY = new Set(['player', 'reader', 'stoppedGeneration', 'chunkedBody', 'call', 'longHead']);
/** What a process gains anyway, in MB: compiled code, and garbage that it collects only when memory is short. */
const GAINED_MB = 24;

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
function audience(memoryMb: number, works: Works, least: Record<string, number>, mostMb = memoryMb) {
  const load = { works, newcomers: { paid: 5 }, seconds: 3, memoryMb };
  return streams(load, { least, most: { 'MB at peak': mostMb } });
}

/** Those who have stopped make room for those who come. */
function madeRoom(works: Works, seconds: number, newcomers: Works = USERS): Scenario {
  const most = { 'ms until newcomers hear something': 2000 };
  return streams({ works, newcomers, seconds, memoryMb: 256 }, { most });
}

/** What has killed a gateway in 256 MB, and takes longer than a siege. */
function attack(works: Works, seconds = 1): Scenario {
  return streams({ works, newcomers: { paid: 5 }, seconds, trackBytes: 3_000_000, memoryMb: 256 });
}

/** No work costs more than the ledger has reserved for it, whether a few are in flight or all that there is room for. */
function reserved(work: string, most: number): [name: string, Scenario][] {
  return [Math.min(50, most), Math.min(200, most), most].map((count) => {
    const run = async () => {
      const load = { works: { [work]: count }, trackBytes: TRACK_BYTES, seconds: 1, memoryMb: 256 };
      const { figures, problems } = await runStreams(load);
      // That some are refused is no problem here.
      return { figures, problems: problems.filter((problem) => problem.startsWith('killed')) };
    };
    const waiting = { 'MB charged but not reserved': GAINED_MB };
    const peak = count === most &&
      FILLS_MEMORY.has(work) && { 'MB charged but not reserved at peak': GAINED_MB };
    return [`reserved-${work}-${count}`, { run, most: { ...waiting, ...peak } }];
  });
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'slow-readers': streams({ works: { reader: 500 }, seconds: 5 }, { most: { 'p99 ms meanwhile': 1000 } }),
  heard: heard({ heard: 1000 }),
  'heard-beside-stopped': heard({ unheard: 100, heard: 400 }),
  'heard-fast': heard({ heardFast: 300 }),
  listeners: audience(256, { player: 400 }, { 'player whole': 380 }),
  'public-listeners': audience(256, { publicPlayer: 330 }, { 'publicPlayer whole': 320 }),
  'too-many-listeners': audience(256, { player: 1000 }, { 'player whole': 220 }, 240),
  'listeners-512': audience(512, { player: 900 }, { 'player whole': 700 }),
  'listeners-1024': audience(1024, { player: 1900 }, { 'player whole': 1500 }),
  /** A track's four players come first: what has been played is downloaded in slices. */
  downloads: streams(
    { works: { player: 4, download: 300 }, seconds: 3, trackBytes: 2_000_000, memoryMb: 256, atOnce: 4 },
    { most: { 'KB charged per work': 800, 'MB at peak': 256 } },
  ),
  // Strangers make room for strangers; users never do.
  'room-of-strangers': madeRoom({ publicPlayer: 700 }, STOPPED_SECONDS.ofStranger, {
    newPublicPlayer: 5,
    ...USERS,
  }),
  'room-of-one-user': madeRoom({ tenfoldPlayer: 900 }, STOPPED_SECONDS.ofUser),
  /** Whoever plays goes on, although orders take all that they may. */
  'players-beside-orders': streams(
    { works: { player: 404, call: 4000 }, seconds: 3, memoryMb: 256 },
    { least: { 'player whole': 380 } },
  ),
  'uploads-beside-listeners': streams(
    { works: { heard: 400 }, newcomers: { upload: 10, paid: 5 }, seconds: 3, memoryMb: 256 },
    { most: { 'MB at peak': 200 } },
  ),
  'waiting-generations': streams(
    { works: { head: 4000 }, seconds: 5 },
    { most: { 'p99 ms meanwhile': 500 } },
  ),
  /** Beside strangers who listen, generations that are made already begin at the same moment. */
  'dead-generations': attack(DEAD_GENERATIONS),
  /** Strangers listen, send bodies in tiny chunks, and then all read on. */
  'tiny-chunks': attack({ publicPlayer: 358, chunkedBody: 28 }),
  /** A user with ten sign-ins takes all that there is. */
  'ten-sign-ins': attack(TEN_SIGN_INS),
  'all-attacks': attack(ALL_ATTACKS, 60),
  ...Object.fromEntries(Object.entries(MOST).flatMap(([work, most]) => reserved(work, most))),
  /** Calls follow a change of DNS within a minute, and none is sent twice. */
  'moved-upstream': {
    run: () => runMove(90),
    most: Object.fromEntries(
      ['GET', 'PUT', 'POST'].map((method) => [`seconds until the last ${method} at the old address`, 60]),
    ),
  },
  'one-instance': {
    run: () => runOne({ seconds: 180, memoryMb: 256, trackMs: 60_000, attendance: MANY }),
    most: GROWTH,
  },
};

function twoInstances(minutes: number): Scenario {
  const often = { redisSeconds: 300, upstreamSeconds: 420, upgradeSeconds: 1200 };
  const attendance = { visitor: 16, author: 5, slowReader: 8, hurried: 8 };
  const run = () => runTwo({ seconds: minutes * 60, ...often, trackMs: 180_000, attendance });
  return { run, most: GROWTH };
}

const { SOAK_MINUTES } = process.env;
const scenarios = SOAK_MINUTES ? { 'two-instances': twoInstances(Number(SOAK_MINUTES)) } : SCENARIOS;

it.each(Object.entries<Scenario>(scenarios))('%s', async (name, { run, most = {}, least = {} }) => {
  const { figures, problems } = await run();
  console.log(name, figures);
  const tooMuch = Object.entries(most).filter(([figure, limit]) => !(Number(figures[figure]) <= limit));
  const tooLittle = Object.entries(least).filter(([figure, limit]) => !(Number(figures[figure]) >= limit));
  expect({ problems, tooMuch, tooLittle }).toEqual({ problems: [], tooMuch: [], tooLittle: [] });
});
