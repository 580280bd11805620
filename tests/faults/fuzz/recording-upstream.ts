/** Upstream and identity provider on a raw socket: reports each call byte for byte, and answers it. */

import net from 'node:net';
import { type Call, MalformedCall, readCall } from './call-reader.ts';
import { answerTo, BASE_PATH, type UpstreamResponse } from './upstream-answers.ts';

export interface RecordingUpstream extends AsyncDisposable {
  readonly upstreamUrl: string;
  readonly identityProviderUrl: string;
  /** How many calls have come. */
  readonly calls: number;
  /** Closes the connections that the gateway keeps for later. */
  dropConnections(): void;
}

interface Listener {
  call(call: Call, answer: UpstreamResponse): void;
  malformed(problem: string, received: string): void;
}

export async function startRecordingUpstream(listener: Listener): Promise<RecordingUpstream> {
  const sockets = new Set<net.Socket>();
  let calls = 0;
  const server = net.createServer((socket) => {
    let received = '';
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (data) => {
      received += data.toString('latin1');
      received = takeCalls(received, socket);
    });
  });

  function takeCalls(received: string, socket: net.Socket): string {
    let rest = received;
    try {
      for (let read = readCall(rest); read; read = readCall(rest)) {
        calls++;
        rest = read.rest;
        const answer = answerTo(read.call);
        listener.call(read.call, answer);
        respond(socket, answer);
      }
      return rest;
    } catch (error) {
      if (!(error instanceof MalformedCall)) throw error;
      listener.malformed(error.message, rest);
      socket.destroy();
      return '';
    }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
  const dropConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    upstreamUrl: origin + BASE_PATH,
    identityProviderUrl: `${origin}/idp`,
    get calls() {
      return calls;
    },
    dropConnections,
    async [Symbol.asyncDispose]() {
      dropConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function respond(socket: net.Socket, answer: UpstreamResponse): void {
  if ('bytes' in answer) socket.write(answer.bytes);
  else if (answer.dies === 'before') socket.destroy();
  else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this');
}
