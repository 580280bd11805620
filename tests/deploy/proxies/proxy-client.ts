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
    this.#sessions = Array.from({ length: connections }, () =>
      http2.connect(`https://127.0.0.1:${proxy.port}`, {
        createConnection: () => connect(proxy, localAddress, 'h2'),
      }),
    );
  }

  /** Sends a request without a body on each connection in turn; resolves when the response has ended. */
  request(method: string, path: string, headers: Record<string, string> = {}) {
    const { promise, resolve, reject } = Promise.withResolvers<{
      status: number;
      headers: http2.IncomingHttpHeaders;
    }>();
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
export function connect(proxy: TlsProxy, localAddress: string, protocol: 'h2' | 'http/1.1'): tls.TLSSocket {
  const socket = net.connect({ host: '127.0.0.1', port: proxy.port, localAddress });
  return tls.connect({ socket, ca: proxy.certificate, ALPNProtocols: [protocol] });
}

/** Writes the head of a request on a connection from that address; an error of the connection only closes it. */
export function openRequest(
  proxy: TlsProxy,
  localAddress: string,
  requestLine: string,
  headerLines: string,
): tls.TLSSocket {
  const socket = connect(proxy, localAddress, 'http/1.1').on('error', () => {});
  const head = `${requestLine} HTTP/1.1\r\nHost: test\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\n`;
  socket.write(`${head}${headerLines}\r\n\r\n`);
  return socket;
}
