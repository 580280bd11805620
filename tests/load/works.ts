/** What a gateway is asked for under load, by users, and by those who want its memory. */

import type { Plan } from './client.ts';
import { cookieOf, orderOf, requestOf } from './raw-client.ts';
import { piecesFor, TRACKS } from './upstream.ts';

type Planner = (index: number, tracks: readonly Uint8Array[]) => Plan;

export interface Work {
  readonly plan: Planner;
  /** Others may be refused or cut off, but never get other bytes. */
  readonly mustBeWhole?: true;
  /** There is no response before it goes on. */
  readonly waits?: 'upstream' | 'client';
  /** It never goes on. */
  readonly stays?: true;
}

const SIGN_IN = 'POST /api/auth/idp';
const PUBLIC = '/api/upstream/v1/music/public';
const KEPT = '/api/upstream/v1/music/creations';
const RANGED = '/api/upstream/v1/music/ranged';
const LARGE_BODY_BYTES = 2_000_000;
const CHUNKS = 16_000;
const UPLOAD = new Uint8Array(20_000_000);
const STOPS = { stops: true } as const;

export const WORKS = {
  /** Wants the whole of a track. */
  reader: { plan: track(KEPT, 'reader', { ...STOPS, range: '' }), mustBeWhole: true },
  /** Wants a track as players do, in one long range. */
  player: { plan: track(RANGED, 'player', STOPS) },
  /** Wants the whole of one that a player has played. */
  download: { plan: track(RANGED, 'download', { ...STOPS, range: '' }), mustBeWhole: true },
  publicPlayer: { plan: track(PUBLIC, undefined, STOPS) },
  newPublicPlayer: { plan: track(PUBLIC), mustBeWhole: true },
  newPlayer: { plan: track(RANGED, 'new'), mustBeWhole: true },
  /** A generation that streams for a second. */
  paid: { plan: pieces('paid'), mustBeWhole: true },
  /** Generations that are heard while they are made, at 128 kbit/s and at 2 Mbit/s. */
  heard: { plan: heard(16_000, 20), mustBeWhole: true },
  heardBriefly: { plan: heard(16_000, 4), mustBeWhole: true },
  heardFast: { plan: heard(256_000, 20), mustBeWhole: true },
  /** The first bytes of such a generation are read. */
  unheard: { plan: heard(16_000, 20, STOPS), stays: true },
  /** Of a generation whose upstream has all of it at once, the first bytes are read. */
  stoppedGeneration: { plan: generation((index) => `stopped-${index}`) },
  deadGeneration: { plan: generation((index) => `dead-${index}`), stays: true },
  /** A generation that is not made yet. */
  head: { plan: pieces('held'), waits: 'upstream', mustBeWhole: true },
  /** A call to an upstream that does not respond. */
  call: { plan: call(''), waits: 'client', stays: true },
  longHead: { plan: call('x'.repeat(14_000)), waits: 'client', stays: true },
  upload: { plan: upload('library', UPLOAD), mustBeWhole: true },
  /** Uploads of which the upstream takes nothing, or the client sends only the start. */
  unreadUpload: { plan: upload('unread', UPLOAD), waits: 'client', stays: true },
  stoppedUpload: { plan: upload('library', UPLOAD.subarray(0, 3_000_000)), waits: 'client', stays: true },
  /** Everything of one user: what six, ten or twelve sign-ins hold. */
  sixfoldPlayer: { plan: track(RANGED, 'one', STOPS, 6) },
  tenfoldPlayer: { plan: track(RANGED, 'one', STOPS, 10) },
  tenfoldGeneration: { plan: generation((index) => `one-${index % 10}`) },
  twelvefoldGeneration: { plan: generation((index) => `one-${index % 12}`) },
  refresh: {
    plan: (index) => ({
      request: requestOf('GET /api/auth/session', { ...expired(`one-${index}`), connection: 'close' }),
    }),
  },
  stalledBody: {
    plan: () => ({ request: requestOf(SIGN_IN, { 'content-length': 60_000 }, '{') }),
    waits: 'client',
    stays: true,
  },
  /** A body in chunks of one byte, which does not end. */
  chunkedBody: {
    plan: () => ({
      request: requestOf(SIGN_IN, { 'transfer-encoding': 'chunked' }) + '1\r\n \r\n'.repeat(CHUNKS),
    }),
    waits: 'client',
    stays: true,
  },
  /** The largest sign-in. All of them are completed at the same moment. */
  largeBody: {
    plan: () => {
      const ignored = 'x'.repeat(LARGE_BODY_BYTES - 100);
      const body = JSON.stringify({ code: 'c', code_verifier: 'v'.repeat(43), ignored });
      return { request: requestOf(SIGN_IN, {}, body).slice(0, -1), rest: '}' };
    },
    waits: 'client',
  },
  check: {
    plan: (index) => ({
      request: requestOf('GET /api/auth/session', cookieOf(`check-${index}`)),
      body: Buffer.from(JSON.stringify({ token: `Bearer check-${index}` })),
    }),
    mustBeWhole: true,
  },
} as const satisfies Readonly<Record<string, Work>>;

/** How many there are of each. */
export type Works = Readonly<Partial<Record<keyof typeof WORKS, number>>>;

/** Of a session whose access has expired. */
export function expired(user: string) {
  return { cookie: `svc_music_access=expired; svc_music_refresh=${user}` };
}

/** @param user the name of the sessions that ask for it, one for each index or `sessions` in all; public by default */
function track(
  path: string,
  user?: string,
  { range = 'bytes=0-', ...reading }: Partial<Plan> & { range?: string } = {},
  sessions = Number.POSITIVE_INFINITY,
): Planner {
  return (index, tracks) => ({
    request: requestOf(`GET ${path}/${index % TRACKS}/content`, {
      ...(user && cookieOf(`${user}-${index % sessions}`)),
      ...(range && { range }),
    }),
    body: tracks[index % TRACKS],
    ...reading,
  });
}

/** A generation of the pieces that belong to its key. */
function pieces(prompt: string): Planner {
  return (index) => {
    const key = `${prompt}-${index}`;
    return { request: orderOf(prompt, key, key), body: Buffer.concat(piecesFor(key)) };
  };
}

function generation(user: (index: number) => string): Planner {
  return (index, tracks) => ({
    request: orderOf(`made ${index % TRACKS}`, `made-${index}`, user(index)),
    body: tracks[index % TRACKS],
    ...STOPS,
  });
}

function heard(bytesPerSecond: number, seconds: number, reading = {}): Planner {
  return (index, tracks) => ({
    request: orderOf(`heard ${index % TRACKS} ${bytesPerSecond} ${seconds}`, 'heard', `heard-${index}`),
    body: tracks[index % TRACKS]?.subarray(0, bytesPerSecond * seconds),
    ...reading,
  });
}

function upload(path: string, sent: Uint8Array): Planner {
  return (index) => {
    const fields = {
      ...cookieOf(`upload-${index}`),
      'content-type': 'audio/wav',
      'content-length': UPLOAD.length,
    };
    const body = Buffer.from(JSON.stringify({ bytes: UPLOAD.length }));
    return { request: requestOf(`POST /api/upstream/v1/${path}`, fields), upload: sent, body };
  };
}

function call(padding: string): Planner {
  return (index) => ({ request: orderOf('never', 'never', `call-${index}`, padding) });
}
