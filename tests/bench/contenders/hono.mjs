/** Hono with its proxy helper and its own CORS middleware, on Bun or on Node. */

import { Hono } from 'hono';
import { cors } from 'hono/cors';
import { proxy } from 'hono/proxy';
import { withAccessLog } from './access-log.mjs';
import {
  accessToken,
  EXPOSED_HEADERS,
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

const app = new Hono();

app.use(
  cors({
    origin: (origin) => (ORIGINS.has(origin) ? origin : null),
    credentials: true,
    exposeHeaders: EXPOSED_HEADERS,
  }),
);
app.use(async (context, next) => {
  context.header('x-content-type-options', 'nosniff');
  if (ORIGINS.has(context.req.header('origin'))) return next();
  return context.json({ error: { message: 'Origin is not allowed.' } }, 403);
});

const respond = withAccessLog(relay);

async function relay(raw, facts, context, path) {
  const token = accessToken(context.req.header('cookie'));
  if (token === undefined) return context.json({ error: { message: 'Not signed in.' } }, 401);
  const { method } = raw;
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, STREAM_TIMEOUT_MS);
  raw.signal.addEventListener('abort', abort, { once: true });
  try {
    const sentAt = performance.now();
    const response = await proxy(UPSTREAM_URL + path, {
      method,
      headers: requestHeaders((name) => context.req.header(name), token),
      ...(method === 'GET' || method === 'HEAD' ? {} : { body: await raw.arrayBuffer() }),
      redirect: 'manual',
      signal: controller.signal,
    });
    facts.upstreamMs = performance.now() - sentAt;
    for (const name of [...response.headers.keys()]) {
      if (!isForwardedResponseHeader(name)) response.headers.delete(name);
    }
    return response;
  } finally {
    clearTimeout(timer);
    raw.signal.removeEventListener('abort', abort);
  }
}

for (const [path, target] of Object.entries(PATHS))
  app.all(path, (context) => respond(context.req.raw, context, target));
app.all(`${PROXY_PREFIX}/v1/*`, (context) => {
  const { pathname, search } = new URL(context.req.url);
  return respond(context.req.raw, context, pathname.slice(PROXY_PREFIX.length) + search);
});

const options = { hostname: HOST, port: PORT, fetch: app.fetch };
if (process.versions.bun) Bun.serve({ ...options, idleTimeout: 255 });
else {
  const { serve } = await import('@hono/node-server');
  serve({ ...options, serverOptions: { keepAliveTimeout: 3_600_000 } });
}
