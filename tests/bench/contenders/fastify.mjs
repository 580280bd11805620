/** Fastify with its own proxy plugin. */

import httpProxy from '@fastify/http-proxy';
import fastify from 'fastify';
import { logger } from './access-log.mjs';
import {
  accessToken,
  corsHeaders,
  HOST,
  isForwardedResponseHeader,
  ORIGINS,
  PATHS,
  PORT,
  PROXY_PREFIX,
  requestHeaders,
  STREAM_TIMEOUT_MS,
  UPSTREAM_URL,
} from './mapping.mjs';

const LOGGED = {
  loggerInstance: logger,
  disableRequestLogging: true,
  genReqId: () => crypto.randomUUID(),
  requestIdLogLabel: 'requestId',
};
const server = fastify({ ...(logger ? LOGGED : { logger: false }), keepAliveTimeout: 3_600_000 });
if (logger) {
  server.addHook('onResponse', (request, reply, done) => {
    request.log.info({
      method: request.method,
      path: request.url,
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
      bytes: Number(reply.getHeader('content-length')),
      upstreamMs: request.upstreamMs,
    });
    done();
  });
}

server.addHook('onRequest', (request, reply, done) => {
  const { origin, cookie } = request.headers;
  reply.headers(corsHeaders(origin));
  if (!ORIGINS.has(origin)) reply.code(403).send({ error: { message: 'Origin is not allowed.' } });
  else if (!accessToken(cookie)) reply.code(401).send({ error: { message: 'Not signed in.' } });
  else done();
});

function forwardedHeaders(headers, request) {
  request.upstreamMs = performance.now() - request.sentAt;
  const forwarded = {};
  for (const name of Object.keys(headers)) {
    if (isForwardedResponseHeader(name)) forwarded[name] = headers[name];
  }
  return forwarded;
}

const prefixes = { ...PATHS, [`${PROXY_PREFIX}/v1`]: '/v1' };
for (const [prefix, rewritePrefix] of Object.entries(prefixes)) {
  server.register(httpProxy, {
    upstream: UPSTREAM_URL,
    prefix,
    rewritePrefix,
    disableRequestLogging: true,
    // As many as there are clients: with the default, requests would wait for a connection.
    undici: {
      connections: 600,
      pipelining: 1,
      headersTimeout: STREAM_TIMEOUT_MS,
      bodyTimeout: STREAM_TIMEOUT_MS,
    },
    replyOptions: {
      rewriteRequestHeaders: (request, headers) => {
        request.sentAt = performance.now();
        return {
          ...requestHeaders((name) => headers[name], accessToken(request.headers.cookie)),
          ...(headers['content-length'] === undefined ? {} : { 'content-length': headers['content-length'] }),
        };
      },
      rewriteHeaders: forwardedHeaders,
    },
  });
}

await server.listen({ host: HOST, port: PORT });
