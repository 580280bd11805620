/**
 * Everything that a stranger and one hostile user can send at once: `attackers-main.ts <url> <seconds>`. It ends by
 * itself, and with its stdin.
 */

import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ORIGIN } from '../../support/world.ts';

const url = new URL(process.argv[2] ?? '');
const seconds = Number(process.argv[3]);
const isTls = url.protocol === 'https:';
/** From several addresses, or a proxy's limit for one address would be all that is tried. */
const ADDRESSES = 20;
/** Not more connections at once than a listener's queue takes. */
const OPENED_AT_ONCE = 50;
/** Before a connection that was closed is opened again. */
const REOPEN_MS = 2000;

let opened = 0;
let isOver = false;
const sockets = new Set<Socket>();

function open(): Promise<Socket> {
  const options = {
    host: url.hostname,
    port: Number(url.port),
    localAddress: `127.0.1.${1 + (opened++ % ADDRESSES)}`,
  };
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const socket = isTls
    ? connectTls({ ...options, rejectUnauthorized: false }, () => resolve(socket))
    : connect(options, () => resolve(socket));
  sockets.add(socket);
  // A refused connection is what the gateway or the proxy may do with an attacker.
  socket.on('error', () => resolve(socket));
  socket.on('close', () => {
    sockets.delete(socket);
    resolve(socket);
  });
  return promise;
}

/** As many as given, and each again when it has been closed. */
async function keep(count: number, hold: (socket: Socket) => void): Promise<void> {
  for (let started = 0; started < count && !isOver; started++) {
    void (async () => {
      while (!isOver) {
        const socket = await open();
        hold(socket);
        await Promise.race([new Promise((resolve) => socket.once('close', resolve)), ended]);
        await Bun.sleep(REOPEN_MS);
      }
    })();
    if (started % OPENED_AT_ONCE === 0) await Bun.sleep(20);
  }
}

function head(start: string, headers: Record<string, string | number>): string {
  const all = { Host: url.host, Origin: ORIGIN, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${start} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** Asks for a public track and never reads it. */
function stopReading(socket: Socket): void {
  socket.pause();
  socket.write(head('GET /api/upstream/v1/music/public/track/content', {}));
}

/** Sends all of a body but its last byte. */
function holdBody(socket: Socket): void {
  socket.resume();
  socket.write(head('POST /api/auth/idp', { ...JSON_TYPE, 'Content-Length': 2_000_000 }));
  socket.write(' '.repeat(1_999_999));
}

/** Sends a byte now and then. */
function drip(socket: Socket): void {
  socket.resume();
  socket.write(head('POST /api/auth/idp', { ...JSON_TYPE, 'Content-Length': 60_000 }));
  const timer = setInterval(() => socket.write('x'), 5000);
  socket.once('close', () => clearInterval(timer));
}

/** Orders a generation that never comes, and leaves. */
function leaveGeneration(socket: Socket): void {
  const body = JSON.stringify({ model: 'm', prompt: 'never', music_length_ms: 3000 });
  const headers = { ...JSON_TYPE, Cookie: 'svc_music_access=hostile; svc_music_refresh=hostile-refresh' };
  socket.resume();
  socket.write(head('POST /api/music/generate', { ...headers, 'Content-Length': body.length }) + body);
  setTimeout(() => socket.destroy(), 200);
}

function sendNested(socket: Socket): void {
  socket.resume();
  socket.end(
    head('POST /api/auth/idp', { ...JSON_TYPE, 'Content-Length': 2_000_000, Connection: 'close' }) +
      '['.repeat(2_000_000),
  );
}

/** Signs in with a made-up code while the provider does not respond, and leaves. */
function leaveSignIn(socket: Socket): void {
  const body = JSON.stringify({ code: 'made-up', code_verifier: 'v'.repeat(43) });
  socket.resume();
  socket.write(head('POST /api/auth/idp', { ...JSON_TYPE, 'Content-Length': body.length }) + body);
  setTimeout(() => socket.destroy(), 200);
}

const ended = Bun.sleep(seconds * 1000).then(() => {
  isOver = true;
});
void Bun.stdin.bytes().then(() => process.exit(0));
await Promise.all([
  keep(200, stopReading),
  keep(160, holdBody),
  keep(4001, drip),
  keep(300, leaveGeneration),
  keep(5, leaveSignIn),
  keep(16, sendNested),
]);
console.log('all there');
await ended;
for (const socket of sockets) socket.destroy();
console.log(`gone after ${opened} connections`);
process.exit(0);
