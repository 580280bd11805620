/** An upstream that sends one track on a raw socket, step by step, and sees whether all of it was read. */

import type net from 'node:net';
import { startRawUpstream } from './raw-upstream.ts';

/** More than the kernel buffers for a connection: it can be sent only when somebody reads it. */
const REST = Buffer.alloc(20_000_000, 'a');

export const FIRST_PIECE = 'first piece';

export interface TrackUpstream extends AsyncDisposable {
  readonly url: string;
  /** Resolves when a generation has arrived. */
  readonly arrived: Promise<void>;
  /** Resolves when the connection is closed, by whichever side. */
  readonly closed: Promise<void>;
  sendHead(): void;
  send(piece: string): void;
  /** Sends the rest; resolves to whether every byte of it was read. */
  finish(): Promise<boolean>;
  breakOff(): void;
}

export async function startTrackUpstream(): Promise<TrackUpstream> {
  const arrived = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let socket: net.Socket | undefined;
  const upstream = await startRawUpstream((each) => {
    socket = each.on('close', () => closed.resolve());
    arrived.resolve();
  });
  return {
    url: upstream.url,
    arrived: arrived.promise,
    closed: closed.promise,
    sendHead: () =>
      void socket?.write(
        `HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nContent-Length: ${FIRST_PIECE.length + REST.length}\r\n\r\n`,
      ),
    send: (piece) => void socket?.write(piece),
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
