/** Requests on sockets that their sender can stop reading, or leave unfinished. */

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ORIGIN } from '../support/world.ts';

/** Waits after so many bytes. */
export type Pace = (bytes: number) => Promise<void>;

/** After the head, or after the chunk before. */
const CHUNK_SIZE = /^(?:HTTP\/1\.1 20[06] .*?\r\n)?\r\n([0-9a-f]+)\r\n/is;

/** @param localAddress an address of this machine, for limits that are for one client */
export function openSocket({ protocol, hostname, port }: URL, localAddress = '127.0.0.1'): Socket {
  const options = { host: hostname, port: Number(port), localAddress };
  const socket =
    protocol === 'https:' ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options);
  // The gateway or a proxy may refuse the connection, or end it.
  return socket.on('error', () => {});
}

export function cookieOf(user: string): Record<string, string> {
  return { cookie: `svc_music_access=${user}; svc_music_refresh=${user}-refresh` };
}

/** @param body as much as is sent of it; `content-length` may declare more */
export function requestOf(
  start: string,
  headers: Readonly<Record<string, string | number>> = {},
  body = '',
): string {
  const declared = body ? { 'content-type': 'application/json', 'content-length': body.length } : {};
  const lines = Object.entries({ host: 'gateway.test', origin: ORIGIN, ...declared, ...headers });
  return `${start} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
}

export function orderOf(prompt: string, key: string, user: string): string {
  const order = JSON.stringify({ model: 'm', prompt, music_length_ms: 3000 });
  return requestOf('POST /api/music/generate', { ...cookieOf(user), 'idempotency-key': key }, order);
}

/** Returns the SHA-256 of a streamed body: hundreds of tracks do not fit into memory. The socket stays open. */
export async function checksumOf(socket: Socket, request: string, pace: Pace): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256');
  let unread = Buffer.alloc(0);
  let left = 0;
  socket.write(request);
  for await (const data of socket.iterator({ destroyOnReturn: false })) {
    unread = Buffer.concat([unread, data]);
    while (unread.length > 0) {
      if (left === 0) {
        const [start = '', size = ''] = CHUNK_SIZE.exec(unread.toString('latin1', 0, 4096)) ?? [];
        if (!start) break;
        left = Number.parseInt(size, 16);
        if (left === 0) return hash.digest('hex');
        unread = unread.subarray(start.length);
      }
      const piece = unread.subarray(0, left);
      hash.update(piece);
      left -= piece.length;
      unread = unread.subarray(piece.length);
    }
    await pace(data.length);
  }
  throw new Error(`closed before the body was complete, after: ${unread.toString('latin1', 0, 1000)}`);
}
