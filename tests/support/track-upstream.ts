/** An upstream that sends one track on a raw socket, step by step, and sees whether all of it was read. */

import type net from 'node:net';
import { startRawUpstream } from './raw-upstream.ts';

/** More than the kernel buffers for a connection: it can be sent only when somebody reads it. */
const REST = Buffer.alloc(20_000_000, 'a');

export const FIRST_PIECE = 'first piece';

export async function startTrackUpstream() {
  const arrived = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let socket: net.Socket | undefined;
  const upstream = await startRawUpstream((each) => {
    socket = each.on('close', () => closed.resolve());
    arrived.resolve();
  });
  return {
    url: upstream.url,
    /** Resolves when a generation has arrived. */
    arrived: arrived.promise,
    /** Resolves when the connection is closed, by whichever side. */
    closed: closed.promise,
    /** @param lines further headers, each with its line break */
    sendHead: (lines = '') =>
      void socket?.write(
        `HTTP/1.1 200 OK\r\n${lines}Content-Length: ${FIRST_PIECE.length + REST.length}\r\n\r\n`,
      ),
    send: (piece: string) => void socket?.write(piece),
    /** Sends the rest; resolves to whether every byte of it was read. */
    finish() {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      socket?.on('finish', () => resolve(true)).end(REST);
      void closed.promise.then(() => resolve(false));
      return promise;
    },
    breakOff: () => void socket?.resetAndDestroy(),
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
}
