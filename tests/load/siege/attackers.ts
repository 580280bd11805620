/** What strangers and hostile users send, from a process of its own: `attackers.ts <url> [attack]`; it ends with its stdin. */

import type { Socket } from 'node:net';
import { cookieOf, openSocket, orderOf, requestOf } from '../raw-client.ts';

interface Attack {
  /** How many connections are kept open. */
  readonly count: number;
  /** How many while everything is tried at once, if fewer: less work for the machine, and no more memory than is there. */
  readonly together?: number;
  /** @param index of all connections that were ever opened */
  readonly begin: (socket: Socket, index: number) => void;
}

/** The attacks come from several addresses: otherwise a proxy's limit for one address would be all that is tried. */
const ADDRESSES = 20;
/** Not more connections at once than a listener's queue takes. */
const OPENED_AT_ONCE = 50;
/** Before a connection that was closed is opened again. */
const REOPEN_MS = 2000;
const SIGN_IN = 'POST /api/auth/idp';
const DETAILS = requestOf('GET /api/upstream/v1/music/public/track');
const TRACK = requestOf('GET /api/upstream/v1/music/public/track/content');

let opened = 0;
/** Between two requests on one connection. */
let pauseMs = 100;

const ATTACKS = {
  'readers of a public track that stop': { count: 200, begin: (socket) => stop(socket, TRACK) },
  'sign-ins that stall in a long body': {
    count: 160,
    begin: (socket) =>
      send(socket, requestOf(SIGN_IN, { 'content-length': 2_000_000 }, ' '.repeat(1_999_999))),
  },
  'sign-ins of which a byte arrives now and then': {
    count: 4001,
    begin(socket) {
      send(socket, requestOf(SIGN_IN, { 'content-length': 60_000 }, '{'));
      const timer = setInterval(() => socket.write('x'), 5000);
      socket.once('close', () => clearInterval(timer));
    },
  },
  'orders whose clients disconnect': {
    count: 300,
    begin: (socket) => leave(socket, orderOf('never', 'one', 'hostile')),
  },
  'exports of two sessions that nobody reads': {
    count: 130,
    begin: (socket, index) =>
      stop(socket, requestOf('POST /api/upstream/v1/export', cookieOf(`exporter-${index % 2}`), '{}')),
  },
  'orders of one session under one key that the upstream replays': { count: 150, begin: order(1) },
  'orders of twelve sessions whose audio begins at the same moment': {
    count: 120,
    together: 0,
    begin: order(12),
  },
  'readers of long details that stop': {
    count: 150,
    together: 100,
    begin: (socket) => stop(socket, DETAILS),
  },
  'refreshes of other tokens again and again': {
    count: 50,
    together: 20,
    begin: repeat('GET /api/auth/session', 'expired'),
  },
  // More than the gateway makes at once.
  'made-up sign-outs': { count: 300, together: 100, begin: repeat('POST /api/auth/logout', 'made-up') },
  'sign-ins at an identity provider that does not respond': {
    count: 5,
    begin: (socket) =>
      leave(socket, requestOf(SIGN_IN, {}, JSON.stringify({ code: 'c', code_verifier: 'v'.repeat(43) }))),
  },
  'deeply nested JSON': {
    count: 16,
    begin: (socket) => send(socket, requestOf(SIGN_IN, { connection: 'close' }, '['.repeat(2_000_000))),
  },
} as const satisfies Readonly<Record<string, Attack>>;

export type AttackName = keyof typeof ATTACKS;

function send(socket: Socket, bytes: string): void {
  socket.resume();
  socket.write(bytes);
}

/** Reads nothing of the response. */
function stop(socket: Socket, bytes: string): void {
  socket.pause();
  socket.write(bytes);
}

/** Disconnects before there is a response. */
function leave(socket: Socket, bytes: string): void {
  send(socket, bytes);
  setTimeout(() => socket.destroy(), 200);
}

function order(sessions: number): Attack['begin'] {
  return (socket, index) => stop(socket, orderOf('replayed', 'one', `customer-${index % sessions}`));
}

/** Sends the same request again after each response, with another refresh token. */
function repeat(start: string, access: string): Attack['begin'] {
  return (socket, index) => {
    let count = 0;
    const next = () => {
      const cookie = `svc_music_access=${access}; svc_music_refresh=${access}-${index}-${count++}`;
      socket.write(requestOf(start, { cookie }, start.startsWith('POST') ? '{}' : ''));
    };
    socket.on('data', (data) => data.includes('HTTP/1.1') && setTimeout(next, pauseMs));
    next();
  };
}

/** Opens the connections, and each again when it has been closed. Resolves when all of them were opened once. */
async function keep(url: URL, { count, begin }: Attack): Promise<void> {
  const again = async () => {
    for (;;) {
      const index = opened++;
      const socket = openSocket(url, `127.0.1.${1 + (index % ADDRESSES)}`);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      begin(socket, index);
      await closed;
      await Bun.sleep(REOPEN_MS);
    }
  };
  for (let started = 0; started < count; started++) {
    void again();
    if (started % OPENED_AT_ONCE === 0) await Bun.sleep(20);
  }
}

if (import.meta.main) {
  const [, , url = '', only] = process.argv;
  void Bun.stdin.bytes().then(() => process.exit(0));
  if (only !== undefined) pauseMs = 0;
  const attacks = Object.entries<Attack>(ATTACKS)
    .filter(([name]) => only === undefined || name === only)
    .map(([, { begin, count, together = count }]) => ({
      begin,
      count: only === undefined ? together : count,
    }));
  if (attacks.length === 0) throw new Error(`no such attack: ${only}`);
  await Promise.all(attacks.map((attack) => keep(new URL(url), attack)));
  console.log('all there');
}
