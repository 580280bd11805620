/** Reads a track from a socket, at the pace of its reader. */

import type net from 'node:net';
import { bytesOf, type ClientRequest } from './requests.ts';

/** Waits after so many bytes. */
export type Pace = (bytes: number) => Promise<void>;

/** After the head, or after the chunk before. */
const CHUNK_SIZE = /^(?:HTTP\/1\.1 20[06] .*?\r\n)?\r\n([0-9a-f]+)\r\n/is;

/** Returns the SHA-256 of the track. Hundreds of tracks do not fit into memory. */
export async function readTrack(socket: net.Socket, request: ClientRequest, pace: Pace): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256');
  let unread = Buffer.alloc(0);
  let left = 0;
  socket.write(bytesOf(request));
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
  throw new Error(`closed before the track was complete, after: ${unread.toString('latin1', 0, 1000)}`);
}
