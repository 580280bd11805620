/** Hono with its proxy helper and its own CORS middleware; a program for each runtime serves it. */

import { Hono } from 'hono';
import { cors } from 'hono/cors';
import { proxy } from 'hono/proxy';
import {
  accessToken,
  EXPOSED_HEADERS,
  isListed,
  ORIGINS,
  PATHS,
  PROXY_PREFIX,
  requestHeaders,
  TIMEOUT_MS,
  UPSTREAM_URL,
} from './mapping-main.mjs';

export const app = new Hono();

app.use(
  cors({
    origin: (origin) => (ORIGINS.has(origin) ? origin : null),
    credentials: true,
    exposeHeaders: EXPOSED_HEADERS,
  }),
);
app.use(async (context, next) => {
  context.header('x-content-type-options', 'nosniff');
  if (!ORIGINS.has(context.req.header('origin'))) {
    return context.json({ error: { message: 'Origin is not allowed.' } }, 403);
  }
  return next();
});

async function forward(context, path) {
  const token = accessToken(context.req.header('cookie'));
  if (token === undefined) return context.json({ error: { message: 'Not signed in.' } }, 401);
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), TIMEOUT_MS);
  const { raw, method } = context.req;
  const abort = () => controller.abort();
  raw.signal.addEventListener('abort', abort, { once: true });
  try {
    const answer = await proxy(UPSTREAM_URL + path, {
      method,
      headers: requestHeaders(context.req.header(), token),
      ...(method === 'GET' || method === 'HEAD' ? {} : { body: await raw.arrayBuffer() }),
      redirect: 'manual',
      signal: controller.signal,
    });
    for (const name of [...answer.headers.keys()]) if (!isListed(name)) answer.headers.delete(name);
    return answer;
  } finally {
    clearTimeout(timer);
    raw.signal.removeEventListener('abort', abort);
  }
}

for (const [path, target] of Object.entries(PATHS)) app.all(path, (context) => forward(context, target));
app.all(`${PROXY_PREFIX}/v1/*`, (context) => {
  const { pathname, search } = new URL(context.req.url);
  return forward(context, pathname.slice(PROXY_PREFIX.length) + search);
});
