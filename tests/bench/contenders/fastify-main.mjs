/** Fastify with its own proxy plugin. */

import httpProxy from '@fastify/http-proxy';
import fastify from 'fastify';
import {
  accessToken,
  corsHeaders,
  ORIGINS,
  PATHS,
  PORT,
  PROXY_PREFIX,
  requestHeaders,
  responseHeaders,
  TIMEOUT_MS,
  UPSTREAM_URL,
} from './mapping-main.mjs';

const server = fastify({ logger: false, keepAliveTimeout: 3_600_000 });

server.addHook('onRequest', (request, reply, done) => {
  const { origin, cookie } = request.headers;
  reply.headers(corsHeaders(origin));
  if (!ORIGINS.has(origin)) reply.code(403).send({ error: { message: 'Origin is not allowed.' } });
  else if (!accessToken(cookie)) reply.code(401).send({ error: { message: 'Not signed in.' } });
  else done();
});

const prefixes = { ...PATHS, [`${PROXY_PREFIX}/v1`]: '/v1' };
for (const [prefix, rewritePrefix] of Object.entries(prefixes)) {
  server.register(httpProxy, {
    upstream: UPSTREAM_URL,
    prefix,
    rewritePrefix,
    disableRequestLogging: true,
    // As many as there are clients: each of its default 128 would wait its turn.
    undici: { connections: 600, pipelining: 1, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS },
    replyOptions: {
      rewriteRequestHeaders: (request, headers) => ({
        ...requestHeaders(headers, accessToken(request.headers.cookie)),
        ...(headers['content-length'] === undefined ? {} : { 'content-length': headers['content-length'] }),
      }),
      rewriteHeaders: responseHeaders,
    },
  });
}

await server.listen({ host: '127.0.0.1', port: PORT });
