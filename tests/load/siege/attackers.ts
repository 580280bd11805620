/** What strangers and hostile users send, from a process of its own: `attackers.ts <url> [attack]`; it ends with its stdin. */

import type { Socket } from 'node:net';
import { cookieOf, openSocket, orderOf, requestOf } from '../raw-client.ts';
import { UNANSWERED } from '../upstream.ts';

/** What is done on a connection, given its index of all that were ever opened. */
type Begin = (socket: Socket, index: number) => void;

/**
 * How many connections are kept open when it is tried alone, and when everything is tried at once, for which the machine
 * may have less memory or time.
 */
type Attack = readonly [name: string, alone: number, together: number, begin: Begin];

/** The attacks come from several addresses: otherwise a proxy's limit for one address would be all that is tried. */
const ADDRESSES = 20;
/** Not more connections at once than a listener's queue takes. */
const OPENED_AT_ONCE = 50;
/** Before a connection that was closed is opened again. */
const REOPEN_MS = 2000;
const WAVES_APART_MS = 1000;
/** More at once are more than the container has: what Bun reads ahead of 130 is 200 MB. */
const FIRST_WAVE = 65;
const SIGN_IN = 'POST /api/auth/idp';
const PUBLIC = 'GET /api/upstream/v1/music/public/track';
const GRANT = JSON.stringify({ code: UNANSWERED, code_verifier: 'v'.repeat(43) });
const DECLARED = { 'content-length': 2_000_000 };
const UPLOAD = { 'content-type': 'audio/wav', 'content-length': 20_000_000 };
const START_OF_UPLOAD = new Uint8Array(3_000_000);
const MOST_OF_A_BODY = ' '.repeat(1_999_999);
const NESTED = '['.repeat(2_000_000);

const [, , target = '', only] = process.argv;
/** Between two requests on one connection. */
const PAUSE_MS = only === undefined ? 100 : 0;

export const ATTACKS = [
  ['readers of a public track that stop', 200, 200, stop(() => requestOf(`${PUBLIC}/content`))],
  ['sign-ins that stall in a long body', 160, 160, send(() => requestOf(SIGN_IN, DECLARED, MOST_OF_A_BODY))],
  ['sign-ins of which a byte arrives now and then', 0, 4001, drip],
  ['orders whose clients disconnect', 0, 300, leave(orderOf('never', 'one', 'hostile'))],
  ['exports of two sessions that nobody reads', 130, 130, stop(exportOf)],
  ['exports by GET of ten sessions that nobody reads', 300, 0, stop(readOf)],
  ['unread exports in two waves of an endpoint that has been cheap so far', 260, 0, inWaves(exportOfMany)],
  ['orders of one session under one key that the upstream replays', 150, 150, order(1)],
  ['orders of five sessions whose audio begins at the same moment', 50, 0, order(5)],
  ['uploads of one session of which the upstream takes nothing', 100, 0, upload(1, 'unread')],
  ['uploads of ten sessions that stand still', 100, 30, upload(10, 'library')],
  ['readers of long details that stop', 150, 100, stop(() => requestOf(PUBLIC))],
  ['refreshes of other tokens again and again', 50, 20, repeat('GET /api/auth/session', 'expired')],
  // More than the gateway makes at once.
  ['made-up sign-outs', 300, 100, repeat('POST /api/auth/logout', 'made-up')],
  ['sign-outs with bodies', 400, 0, send(longSignOut)],
  ['sign-ins at an identity provider that does not respond', 0, 5, leave(requestOf(SIGN_IN, {}, GRANT))],
  ['deeply nested JSON', 0, 16, send(() => requestOf(SIGN_IN, { connection: 'close' }, NESTED))],
] as const satisfies readonly Attack[];

export type AttackName = (typeof ATTACKS)[number][0];

function send(bytes: (index: number) => string): Begin {
  return (socket, index) => socket.resume().write(bytes(index));
}

/** Reads nothing of the response. */
function stop(bytes: (index: number) => string): Begin {
  return (socket, index) => socket.pause().write(bytes(index));
}

/** As many as the price of the endpoint so far admits, and the others when it has risen. */
function inWaves(bytes: (index: number) => string): Begin {
  return (socket, index) => {
    socket.pause();
    setTimeout(() => socket.write(bytes(index)), index < FIRST_WAVE ? 0 : WAVES_APART_MS);
  };
}

/** Disconnects before there is a response. */
function leave(bytes: string): Begin {
  return (socket) => {
    socket.resume().write(bytes);
    setTimeout(() => socket.destroy(), 200);
  };
}

function exportOf(index: number): string {
  return requestOf('POST /api/upstream/v1/export', cookieOf(`exporter-${index % 2}`), '{}');
}

function readOf(index: number): string {
  return requestOf('GET /api/upstream/v1/export', cookieOf(`exporter-${index % 10}`));
}

function exportOfMany(index: number): string {
  return requestOf('POST /api/upstream/v1/export', cookieOf(`exporter-${index}`), '{}');
}

function upload(sessions: number, path: string): Begin {
  return (socket, index) => {
    const fields = { ...cookieOf(`uploader-${index % sessions}`), ...UPLOAD };
    socket.resume().write(requestOf(`POST /api/upstream/v1/${path}`, fields));
    socket.write(START_OF_UPLOAD);
  };
}

function longSignOut(index: number): string {
  const headers = { ...cookieOf(`${UNANSWERED}-${index}`), ...DECLARED };
  return requestOf('POST /api/auth/logout', headers, ' '.repeat(1_300_000));
}

function order(sessions: number): Begin {
  return stop((index) => orderOf('replayed', 'one', `customer-${index % sessions}`));
}

function drip(socket: Socket): void {
  socket.resume().write(requestOf(SIGN_IN, { 'content-length': 60_000 }, '{'));
  const timer = setInterval(() => socket.write('x'), 5000);
  socket.once('close', () => clearInterval(timer));
}

/** Sends the same request again after each response, with another refresh token. */
function repeat(start: string, access: string): Begin {
  return (socket, index) => {
    let count = 0;
    const next = () => {
      const cookie = `svc_music_access=${access}; svc_music_refresh=${access}-${index}-${count++}`;
      socket.write(requestOf(start, { cookie }, start.startsWith('POST') ? '{}' : ''));
    };
    socket.on('data', (data) => data.includes('HTTP/1.1') && setTimeout(next, PAUSE_MS));
    next();
  };
}

let opened = 0;

/** Opens a connection, and again when it has been closed. */
function keep(begin: Begin): void {
  const index = opened++;
  const socket = openSocket(new URL(target), `127.0.1.${1 + (index % ADDRESSES)}`);
  socket.once('close', () => setTimeout(() => keep(begin), REOPEN_MS));
  begin(socket, index);
}

if (import.meta.main) {
  void Bun.stdin.bytes().then(() => process.exit(0));
  const attacks = ATTACKS.filter(([name]) => only === undefined || name === only);
  if (attacks.length === 0) throw new Error(`no such attack: ${only}`);
  const begun = attacks.map(async ([, alone, together, begin]) => {
    for (let started = 0; started < (only === undefined ? together : alone); started++) {
      keep(begin);
      if (started % OPENED_AT_ONCE === 0) await Bun.sleep(20);
    }
  });
  await Promise.all(begun);
  console.log('all there');
}
