/** Elysia as a proxy, with its CORS plugin and `fetch`, and no more than that. */

import { cors } from '@elysiajs/cors';
import { Elysia } from 'elysia';

const environment = (name: string) => process.env[name] ?? '';
const mapping: {
  readonly paths: Readonly<Record<string, string>>;
  readonly proxyPrefix: string;
  readonly accessCookie: string;
  readonly requestHeaders: readonly string[];
  readonly responseHeaders: readonly string[];
  readonly exposedHeaders: string[];
} = JSON.parse(environment('MAPPING'));
const upstreamUrl = environment('UPSTREAM_URL');
const origins = new Set(environment('ALLOWED_ORIGINS').split(','));

async function forward(request: Request, path: string): Promise<Response> {
  const token = new Bun.CookieMap(request.headers.get('cookie') ?? '').get(mapping.accessCookie);
  if (!token) return Response.json({ error: { message: 'Not signed in.' } }, { status: 401 });
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  for (const name of mapping.requestHeaders) {
    const value = request.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
  const answer = await fetch(upstreamUrl + path, {
    method: request.method,
    headers,
    ...(hasBody ? { body: await request.arrayBuffer() } : {}),
    signal: request.signal,
    redirect: 'manual',
    decompress: false,
  });
  const passed = new Headers();
  for (const name of mapping.responseHeaders) {
    const value = answer.headers.get(name);
    if (value !== null) passed.set(name, value);
  }
  return new Response(answer.body, { status: answer.status, headers: passed });
}

const app = new Elysia({ serve: { idleTimeout: 255 } })
  .headers({ 'x-content-type-options': 'nosniff' })
  .use(
    cors({
      origin: ({ headers }) => origins.has(headers.get('origin') ?? ''),
      credentials: true,
      exposeHeaders: mapping.exposedHeaders,
    }),
  )
  .onRequest(({ request, status }) => {
    if (!origins.has(request.headers.get('origin') ?? '')) {
      return status(403, { error: { message: 'Origin is not allowed.' } });
    }
    return undefined;
  });
for (const [path, target] of Object.entries(mapping.paths)) {
  app.all(path, ({ request }) => forward(request, target), { parse: 'none' });
}
app.all(
  `${mapping.proxyPrefix}/v1/*`,
  ({ request }) => {
    const { pathname, search } = new URL(request.url);
    return forward(request, pathname.slice(mapping.proxyPrefix.length) + search);
  },
  { parse: 'none' },
);
app.listen({ hostname: '127.0.0.1', port: Number(environment('PORT')) });
