/** Upstream and identity provider on a raw socket: reports each call byte for byte, and responds to it. */

import net from 'node:net';
import { MalformedHttp } from '../../support/raw-http.ts';
import { type Call, parseCall } from './call-parser.ts';
import type { UpstreamResponse } from './upstream-responses.ts';

interface Listener {
  /** @returns how the upstream responds */
  call(call: Call): UpstreamResponse;
  malformed(problem: string, received: string): void;
}

export type RecordingUpstream = Awaited<ReturnType<typeof startRecordingUpstream>>;

export async function startRecordingUpstream(listener: Listener) {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    let received = '';
    sockets.add(socket);
    socket.setNoDelay(true);
    // The gateway may reset the connection; the `close` event follows.
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (data) => {
      received += data.toString('latin1');
      try {
        for (let parsed = parseCall(received); parsed; parsed = parseCall(received)) {
          received = parsed.rest;
          respond(socket, listener.call(parsed.call));
        }
      } catch (error) {
        if (!(error instanceof MalformedHttp)) throw error;
        listener.malformed(error.message, received);
        socket.destroy();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const host = `127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
  const dropConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    host,
    /** Closes the connections that the gateway keeps open. */
    dropConnections,
    async [Symbol.asyncDispose]() {
      dropConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function respond(socket: net.Socket, response: UpstreamResponse): void {
  if ('bytes' in response) socket.write(response.bytes);
  else if (response.dies === 'before') socket.destroy();
  else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this');
}
