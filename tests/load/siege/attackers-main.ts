/**
 * Everything that a stranger and one hostile user can send at once: `attackers-main.ts <url> <seconds>`. It ends by
 * itself, and with its stdin.
 */

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ORIGIN } from '../../support/world.ts';

const url = new URL(process.argv[2] ?? '');
const seconds = Number(process.argv[3]);
/** The attacks come from several addresses: otherwise a proxy's limit for one address would be all that is tried. */
const ADDRESSES = 20;
/** Not more connections at once than a listener's queue takes. */
const OPENED_AT_ONCE = 50;
/** Before a connection that was closed is opened again. */
const REOPEN_MS = 2000;
const SIGN_IN = 'POST /api/auth/idp';

let opened = 0;
let isOver = false;
const sockets = new Set<Socket>();

/** Sends the head of a request, and as much of its JSON body as is given. */
function send(socket: Socket, start: string, length: number, body = '', lines = ''): void {
  const type = length > 0 ? `Content-Type: application/json\r\nContent-Length: ${length}\r\n` : '';
  const head = `${start} HTTP/1.1\r\nHost: ${url.host}\r\nOrigin: ${ORIGIN}\r\n${type}${lines}\r\n`;
  socket.resume();
  socket.write(head + body);
}

/** Sends a request with its whole body, and disconnects before there is a response. */
function leave(socket: Socket, start: string, json: unknown, lines = ''): void {
  const body = JSON.stringify(json);
  send(socket, start, body.length, body, lines);
  setTimeout(() => socket.destroy(), 200);
}

function cookieOf(access: string): string {
  return `Cookie: svc_music_access=${access}; svc_music_refresh=${access}-${opened}\r\n`;
}

/** Sends the same request again after each response, with another refresh token. */
function repeat(socket: Socket, start: string, cookie: string): void {
  let count = 0;
  const next = () => send(socket, start, 0, '', cookie.replace('\r\n', `-${count++}\r\n`));
  socket.on('data', () => setTimeout(next, 100));
  next();
}

/** How many connections are kept for each attack, and what is sent on them. */
const ATTACKS: readonly (readonly [count: number, attack: (socket: Socket) => void])[] = [
  [
    200,
    function stopReading(socket) {
      send(socket, 'GET /api/upstream/v1/music/public/track/content', 0);
      socket.pause();
    },
  ],
  [160, (socket) => send(socket, SIGN_IN, 2_000_000, ' '.repeat(1_999_999))],
  [
    4001,
    function drip(socket) {
      send(socket, SIGN_IN, 60_000);
      const timer = setInterval(() => socket.write('x'), 5000);
      socket.once('close', () => clearInterval(timer));
    },
  ],
  [
    300,
    function leaveGeneration(socket) {
      const order = { model: 'm', prompt: 'never', music_length_ms: 3000 };
      leave(socket, 'POST /api/music/generate', order, cookieOf('hostile'));
    },
  ],
  [
    130,
    function exportAndStop(socket) {
      send(socket, 'POST /api/upstream/v1/export', 2, '{}', cookieOf(`exporter-${opened % 2}`));
      socket.pause();
    },
  ],
  [
    150,
    function repeatOrder(socket) {
      const order = JSON.stringify({ model: 'm', prompt: 'replayed', music_length_ms: 3000 });
      const lines = `Idempotency-Key: one\r\n${cookieOf('customer')}`;
      send(socket, 'POST /api/music/generate', order.length, order, lines);
      socket.pause();
    },
  ],
  [
    100,
    function stopReadingDetails(socket) {
      send(socket, 'GET /api/upstream/v1/music/public/track', 0);
      socket.pause();
    },
  ],
  [20, (socket) => repeat(socket, 'GET /api/auth/session', cookieOf('expired'))],
  [100, (socket) => repeat(socket, 'POST /api/auth/logout', cookieOf('made-up'))],
  [5, (socket) => leave(socket, SIGN_IN, { code: 'made-up', code_verifier: 'v'.repeat(43) })],
  [16, (socket) => send(socket, SIGN_IN, 2_000_000, '['.repeat(2_000_000), 'Connection: close\r\n')],
];

function open(): Promise<Socket> {
  const localAddress = `127.0.1.${1 + (opened++ % ADDRESSES)}`;
  const options = { host: url.hostname, port: Number(url.port), localAddress };
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const socket =
    url.protocol === 'https:'
      ? connectTls({ ...options, rejectUnauthorized: false }, () => resolve(socket))
      : connect(options, () => resolve(socket));
  sockets.add(socket);
  // The gateway or the proxy may refuse an attacker's connection.
  socket.on('error', () => resolve(socket));
  socket.on('close', () => {
    sockets.delete(socket);
    resolve(socket);
  });
  return promise;
}

/** Opens the connections, and each again when it has been closed. */
async function keep(count: number, attack: (socket: Socket) => void): Promise<void> {
  const repeat = async () => {
    while (!isOver) {
      const socket = await open();
      attack(socket);
      await Promise.race([new Promise((resolve) => socket.once('close', resolve)), ended]);
      await Bun.sleep(REOPEN_MS);
    }
  };
  for (let started = 0; started < count && !isOver; started++) {
    void repeat();
    if (started % OPENED_AT_ONCE === 0) await Bun.sleep(20);
  }
}

const ended = Bun.sleep(seconds * 1000).then(() => {
  isOver = true;
});
void Bun.stdin.bytes().then(() => process.exit(0));
await Promise.all(ATTACKS.map(([count, attack]) => keep(count, attack)));
console.log('all there');
await ended;
process.exit(0);
