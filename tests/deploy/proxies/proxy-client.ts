/** A client of a TLS proxy that has an address of its own, for limits that are per address. */

import http2 from 'node:http2';
import net from 'node:net';
import tls from 'node:tls';
import { ORIGIN, SIGNED_IN } from '../../support/world.ts';
import type { TlsProxy } from './tls-proxies.ts';

/** HTTP/2 over connections from one address of this machine, such as 127.0.0.2. */
export class ProxyClient implements Disposable {
  readonly #sessions: http2.ClientHttp2Session[];
  #requests = 0;

  constructor(proxy: TlsProxy, localAddress: string, { connections = 1 } = {}) {
    const createConnection = () => connect(proxy, localAddress, { ALPNProtocols: ['h2'] });
    this.#sessions = Array.from({ length: connections }, () =>
      http2.connect(`https://127.0.0.1:${proxy.port}`, { createConnection }),
    );
  }

  /** Sends a request without a body on each connection in turn; resolves when the response has ended. */
  request(method: string, path: string, headers: Record<string, string> = {}) {
    type Ended = { readonly status: number; readonly headers: http2.IncomingHttpHeaders };
    const { promise, resolve, reject } = Promise.withResolvers<Ended>();
    const session = this.#sessions[this.#requests++ % this.#sessions.length];
    const stream = session?.request({ ':method': method, ':path': path, origin: ORIGIN, ...headers });
    stream?.on('error', reject).on('response', (head) => {
      stream.on('end', () => resolve({ status: Number(head[':status']), headers: head })).resume();
    });
    stream?.end();
    return promise;
  }

  [Symbol.dispose](): void {
    for (const session of this.#sessions) session.destroy();
  }
}

/** A connection on which a test writes and reads what it likes. */
export function connect(proxy: TlsProxy, localAddress: string, options: tls.ConnectionOptions = {}) {
  const socket = net.connect({ host: '127.0.0.1', port: proxy.port, localAddress });
  return tls.connect({ socket, ca: proxy.certificate, ...options });
}

/** Writes the head of an HTTP/1.1 request; an error of the connection only closes it. */
export function writeHead(connection: tls.TLSSocket, requestLine: string, ...headers: string[]) {
  const own = ['Host: test', `Origin: ${ORIGIN}`, `Cookie: ${SIGNED_IN}`];
  connection.on('error', () => {});
  connection.write([`${requestLine} HTTP/1.1`, ...own, ...headers, '\r\n'].join('\r\n'));
  return connection;
}
