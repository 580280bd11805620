/** Express with http-proxy-middleware. */

import http from 'node:http';
import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
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

const KEPT = new Set(['host', 'connection', 'content-length', 'transfer-encoding']);

const app = express();
app.disable('x-powered-by');
app.disable('etag');
if (logger) app.use(writeLine);
app.use((request, response, next) => {
  const { origin, cookie } = request.headers;
  response.set(corsHeaders(origin));
  if (!ORIGINS.has(origin)) response.status(403).json({ error: { message: 'Origin is not allowed.' } });
  else if (!accessToken(cookie)) response.status(401).json({ error: { message: 'Not signed in.' } });
  else next();
});
app.use(
  createProxyMiddleware({
    target: UPSTREAM_URL,
    agent: new http.Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: 600 }),
    changeOrigin: true,
    proxyTimeout: STREAM_TIMEOUT_MS,
    pathFilter: (path) => PATHS[path] !== undefined || path.startsWith(`${PROXY_PREFIX}/v1/`),
    pathRewrite: (path) => PATHS[path] ?? path.slice(PROXY_PREFIX.length),
    on: {
      proxyReq: (outgoing, request) => {
        request.sentAt = performance.now();
        const forwarded = requestHeaders(
          (name) => request.headers[name],
          accessToken(request.headers.cookie),
        );
        for (const name of outgoing.getHeaderNames()) {
          if (!KEPT.has(name) && forwarded[name] === undefined) outgoing.removeHeader(name);
        }
        outgoing.setHeader('authorization', forwarded.authorization);
      },
      proxyRes: (incoming, request) => {
        request.upstreamMs = performance.now() - request.sentAt;
        for (const name of Object.keys(incoming.headers)) {
          if (!isForwardedResponseHeader(name) && !KEPT.has(name)) delete incoming.headers[name];
        }
      },
    },
  }),
);

function writeLine(request, response, next) {
  const startedAt = performance.now();
  const { method, path } = request;
  response.on('close', () =>
    logger.info({
      requestId: crypto.randomUUID(),
      method,
      path,
      status: response.statusCode,
      durationMs: performance.now() - startedAt,
      bytes: Number(response.getHeader('content-length')),
      upstreamMs: request.upstreamMs,
    }),
  );
  next();
}

const server = app.listen(PORT, HOST);
server.keepAliveTimeout = 3_600_000;
