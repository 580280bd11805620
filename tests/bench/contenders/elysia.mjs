/** Elysia as a proxy, with its CORS plugin and `fetch`. */

import { cors } from '@elysiajs/cors';
import { Elysia } from 'elysia';
import { withAccessLog } from './access-log.mjs';
import {
  accessToken,
  copyResponseHeaders,
  EXPOSED_HEADERS,
  HOST,
  ORIGINS,
  PATHS,
  PORT,
  PROXY_PREFIX,
  requestHeaders,
  UPSTREAM_URL,
} from './mapping.mjs';

const respond = withAccessLog(relay);

async function relay(request, facts, path) {
  const token = accessToken(request.headers.get('cookie'));
  if (!token) return Response.json({ error: { message: 'Not signed in.' } }, { status: 401 });
  const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
  const sentAt = performance.now();
  const response = await fetch(UPSTREAM_URL + path, {
    method: request.method,
    headers: requestHeaders((name) => request.headers.get(name), token),
    ...(hasBody ? { body: await request.arrayBuffer() } : {}),
    signal: request.signal,
    redirect: 'manual',
    decompress: false,
  });
  facts.upstreamMs = performance.now() - sentAt;
  const headers = new Headers();
  copyResponseHeaders(response.headers, headers);
  return new Response(response.body, { status: response.status, headers });
}

const app = new Elysia({ serve: { idleTimeout: 255 } })
  .headers({ 'x-content-type-options': 'nosniff' })
  .use(
    cors({
      origin: ({ headers }) => ORIGINS.has(headers.get('origin')),
      credentials: true,
      exposeHeaders: EXPOSED_HEADERS,
    }),
  )
  .onRequest(({ request, status }) => {
    if (ORIGINS.has(request.headers.get('origin'))) return undefined;
    return status(403, { error: { message: 'Origin is not allowed.' } });
  });
for (const [path, target] of Object.entries(PATHS)) {
  app.all(path, ({ request }) => respond(request, target), { parse: 'none' });
}
app.all(
  `${PROXY_PREFIX}/v1/*`,
  ({ request }) => {
    const { pathname, search } = new URL(request.url);
    return respond(request, pathname.slice(PROXY_PREFIX.length) + search);
  },
  { parse: 'none' },
);
app.listen({ hostname: HOST, port: PORT });
