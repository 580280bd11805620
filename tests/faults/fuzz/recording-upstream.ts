/** Upstream and identity provider on a raw socket: parses each call strictly, reports it byte for byte, and responds. */

import net from 'node:net';
import { MalformedHttp, parseChunks } from '../../support/raw-http.ts';
import type { UpstreamResponse } from './responses.ts';

export interface Call {
  readonly method: string;
  /** Byte for byte as it was sent. */
  readonly target: string;
  /** By their names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** One character per byte. */
  readonly body: string;
}

interface Listener {
  /** @returns how the upstream responds */
  call(call: Call): UpstreamResponse;
  /** Whatever is not plain HTTP/1.1. */
  malformed(problem: string, received: string): void;
}

const REQUEST_LINE = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([A-Za-z0-9-]+): ?([\t\x20-\x7e\x80-\xff]*)$/;

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
  return {
    host: `127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function respond(socket: net.Socket, response: UpstreamResponse): void {
  if (response === 'dies before') socket.destroy();
  else if (response === 'dies within') socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this');
  else socket.write(response);
}

/** Returns the first call and what follows it; undefined until it is complete. @throws MalformedHttp */
function parseCall(received: string): { readonly call: Call; readonly rest: string } | undefined {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [requestLine = '', ...lines] = received.slice(0, end).split('\r\n');
  const [, method, target] = REQUEST_LINE.exec(requestLine) ?? [];
  if (method === undefined || target === undefined)
    throw new MalformedHttp(`request line ${JSON.stringify(requestLine)}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new MalformedHttp(`header ${JSON.stringify(line)}`);
    if (headers.has(name.toLowerCase())) throw new MalformedHttp(`header ${name} twice`);
    headers.set(name.toLowerCase(), value);
  }
  const after = received.slice(end + 4);
  const body = parseBody(headers, after);
  return body && { call: { method, target, headers, body: body.text }, rest: after.slice(body.length) };
}

function parseBody(headers: ReadonlyMap<string, string>, after: string) {
  const declared = headers.get('content-length');
  const coding = headers.get('transfer-encoding');
  if (declared !== undefined && coding !== undefined) throw new MalformedHttp('two lengths');
  if (coding !== undefined) return parseChunks(after);
  if (declared !== undefined && !/^\d{1,8}$/.test(declared)) throw new MalformedHttp(`length ${declared}`);
  const length = Number(declared ?? 0);
  return after.length < length ? undefined : { text: after.slice(0, length), length };
}
