/** A proxy that speaks HTTP/2 to the browser and HTTP/1.1 to the server, with each request in chunks, even a GET. */

import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import { pipeline } from 'node:stream';
import { CERTIFICATE } from './certificate.ts';

/** What HTTP/2 says in frames of its own. @see RFC 9113 section 8.2.2 */
const FRAMING = /^(?::|(?:connection|keep-alive|transfer-encoding|content-length)$)/;

function withoutFraming(headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !FRAMING.test(name)));
}

/** Passes each request on to the server of this machine that it is for, so that a browser may use it for all of them. */
export async function startHttp2Proxy() {
  // On a kept connection, what a server leaves of one request would spoil the next one.
  const agent = new http.Agent({ keepAlive: true });
  const pem = await Bun.file(CERTIFICATE).text();
  const sessions = new Set<http2.Http2Session>();
  const server = http2.createSecureServer({ key: pem, cert: pem }, (request, response) => {
    const { method, url, authority } = request;
    const headers = {
      ...withoutFraming(request.headers),
      host: authority,
      'transfer-encoding': 'chunked',
    };
    const onward = http.request(`http://${authority}${url}`, { agent, method, headers });
    const fail = () => response.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    onward.on('error', fail);
    onward.on('response', (head) => {
      response.writeHead(head.statusCode ?? 502, withoutFraming(head.headers));
      pipeline(head, response, (failure) => failure && fail());
    });
    request.pipe(onward);
    response.on('close', () => response.writableFinished || onward.destroy());
  });
  server.on('session', (session) => sessions.add(session));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://127.0.0.1:${Object(server.address()).port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const session of sessions) session.destroy();
      agent.destroy();
      await closed;
    },
  };
}
