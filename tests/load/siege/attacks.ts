/** Single attacks of one user or stranger, each of which alone must harm nobody. */

import { connect, type Socket } from 'node:net';
import { ORIGIN, request } from '../../support/world.ts';

const TRACK = JSON.stringify({ model: 'm', prompt: 'replayed', music_length_ms: 3000 });
/** Until all that the gateway and Bun read ahead has arrived. */
const READ_AHEAD_MS = 8000;
const REFRESHES = 50_000;
const VICTIMS = 30;

export interface Attack {
  readonly name: string;
  /** @returns how many of the victims have come to harm, where that is not the gateway's end */
  readonly run: (url: string, upstreamUrl: string) => Promise<number>;
}

export const ATTACKS: readonly Attack[] = [
  {
    name: '130 POSTs of two sessions with long responses that nobody reads',
    run: (url) =>
      stopReading(url, 130, (index) => post('/api/upstream/v1/export', '{}', cookieOf(`user-${index % 2}`))),
  },
  {
    name: '150 orders of two sessions under one key that the upstream replays',
    run: (url) => stopReading(url, 150, (index) => orderOf(`user-${index % 2}`)),
  },
  {
    name: '140 orders of fourteen sessions whose audio begins at the same moment',
    run: (url) => stopReading(url, 140, (index) => orderOf(`user-${index % 14}`)),
  },
  {
    name: '100 stopped readers of long details',
    run: (url) => stopReading(url, 100, () => get('/api/upstream/v1/music/public/track')),
  },
  {
    name: '50,000 refreshes, and then 100 stopped readers',
    run: async (url) => {
      await refreshAgainAndAgain(url);
      const path = '/api/upstream/v1/music/creations/1/content';
      return stopReading(url, 100, (index) => get(path, cookieOf(`user-${index % 4}`)));
    },
  },
  { name: 'made-up sign-outs while users sign out', run: signOutMeanwhile },
];

function cookieOf(user: string): string {
  return `Cookie: svc_music_access=${user}; svc_music_refresh=${user}-refresh\r\n`;
}

function get(path: string, lines = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\n${lines}\r\n`;
}

function orderOf(user: string): string {
  return post('/api/music/generate', TRACK, `Idempotency-Key: one\r\n${cookieOf(user)}`);
}

function post(path: string, json: string, lines: string): string {
  const type = `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n`;
  return `POST ${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\n${type}${lines}\r\n${json}`;
}

/** Sends the requests at once, and reads nothing. */
async function stopReading(
  url: string,
  count: number,
  requestOf: (index: number) => string,
): Promise<number> {
  const port = Number(new URL(url).port);
  const sockets: Socket[] = [];
  for (let index = 0; index < count; index++) {
    const socket = connect({ port, host: '127.0.0.1' });
    // The gateway may refuse one, or close it at the end.
    socket.on('error', () => {});
    socket.write(requestOf(index));
    socket.pause();
    sockets.push(socket);
  }
  await Bun.sleep(READ_AHEAD_MS);
  for (const socket of sockets) socket.destroy();
  return 0;
}

/** One user with many sessions. */
async function refreshAgainAndAgain(url: string): Promise<number> {
  let left = REFRESHES;
  const lane = async (session: number) => {
    while (left-- > 0) {
      const cookie = `svc_music_access=expired; svc_music_refresh=spent-${session}-${left}`;
      const response = await request(`${url}/api/auth/session`, { cookie });
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: 50 }, (_, session) => lane(session)));
  return 0;
}

/** Returns how many users stay signed in at the upstream. */
async function signOutMeanwhile(url: string, upstreamUrl: string): Promise<number> {
  const signOut = async (token: string) => {
    const cookie = `svc_music_access=${token}; svc_music_refresh=${token}`;
    await request(`${url}/api/auth/logout`, { method: 'POST', cookie }).then((response) => response.text());
  };
  let isOver = false;
  const strangers = Array.from({ length: 150 }, async (_, lane) => {
    for (let count = 0; !isOver; count++) await signOut(`made-up-${lane}-${count}`);
  });
  await Bun.sleep(1000);
  for (let victim = 0; victim < VICTIMS; victim++) {
    await Bun.sleep(50);
    await signOut(`victim-${victim}`);
  }
  isOver = true;
  await Promise.all(strangers);
  const signedOut: unknown = await (await fetch(`${upstreamUrl}/v1/signed-out`)).json();
  const isThere = (victim: number) => Array.isArray(signedOut) && signedOut.includes(`victim-${victim}`);
  return Array.from({ length: VICTIMS }, (_, victim) => victim).filter((victim) => !isThere(victim)).length;
}
