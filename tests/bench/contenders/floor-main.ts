/**
 * The floor: the gateway's mapping by hand on `Bun.serve` and `fetch`, as a careful person would write it and no more:
 * no refresh, no sign-in, no limits, no texts.
 */

interface Mapping {
  readonly paths: Readonly<Record<string, string>>;
  readonly proxyPrefix: string;
  readonly accessCookie: string;
  readonly requestHeaders: readonly string[];
  readonly responseHeaders: readonly string[];
  readonly exposedHeaders: readonly string[];
  readonly streamTimeoutMs: number;
  readonly readTimeoutMs: number;
}

const environment = (name: string) => process.env[name] ?? '';
const mapping: Mapping = JSON.parse(environment('MAPPING'));
const upstreamUrl = environment('UPSTREAM_URL');
const origins = new Set(environment('ALLOWED_ORIGINS').split(','));
const exposed = mapping.exposedHeaders.join(', ');
const GENERATE = '/api/music/generate';
/** Bun's own idle timer must not cut off a call that still has its time. */
const IDLE_TIMEOUT_SECONDS = 255;

async function answer(request: Request): Promise<Response> {
  const origin = request.headers.get('origin');
  if (origin === null || !origins.has(origin)) return refused(403, 'Origin is not allowed.', origin);
  const target = targetOf(request.url);
  if (target === undefined) return refused(404, 'Not found.', origin);
  const token = new Bun.CookieMap(request.headers.get('cookie') ?? '').get(mapping.accessCookie);
  if (!token) return refused(401, 'Not signed in.', origin);
  try {
    return await call(request, target, token, origin);
  } catch {
    return refused(502, 'The music service cannot be reached.', origin);
  }
}

async function call(request: Request, target: Target, token: string, origin: string): Promise<Response> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), target.timeoutMs);
  // A generation is paid for: it goes on when its client has gone.
  const signal = target.isGeneration ? undefined : request.signal;
  const abort = () => controller.abort();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
    const response = await fetch(target.url, {
      method: request.method,
      headers: requestHeaders(request, token),
      ...(hasBody ? { body: await request.arrayBuffer() } : {}),
      signal: controller.signal,
      redirect: 'manual',
      decompress: false,
      timeout: 300_000,
    });
    return new Response(response.body, {
      status: response.status,
      headers: responseHeaders(response, origin),
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}

interface Target {
  readonly url: string;
  readonly timeoutMs: number;
  readonly isGeneration: boolean;
}

function targetOf(address: string): Target | undefined {
  const { pathname, search } = new URL(address);
  const path = mapping.paths[pathname];
  const isGeneration = pathname === GENERATE;
  if (path !== undefined) {
    const timeoutMs = isGeneration ? mapping.streamTimeoutMs : mapping.readTimeoutMs;
    return { url: upstreamUrl + path, timeoutMs, isGeneration };
  }
  if (!pathname.startsWith(`${mapping.proxyPrefix}/v1/`)) return undefined;
  const url = upstreamUrl + pathname.slice(mapping.proxyPrefix.length) + search;
  return { url, timeoutMs: mapping.streamTimeoutMs, isGeneration };
}

function requestHeaders(request: Request, token: string): Record<string, string> {
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  for (const name of mapping.requestHeaders) {
    const value = request.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  return headers;
}

function responseHeaders(response: Response, origin: string): Headers {
  const headers = new Headers(commonHeaders(origin));
  for (const name of mapping.responseHeaders) {
    const value = response.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return headers;
}

function commonHeaders(origin: string | null): Record<string, string> {
  const common = { vary: 'Origin', 'x-content-type-options': 'nosniff' };
  if (origin === null || !origins.has(origin)) return common;
  return {
    ...common,
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': exposed,
  };
}

function refused(status: number, message: string, origin: string | null): Response {
  return Response.json({ error: { message } }, { status, headers: commonHeaders(origin) });
}

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(environment('PORT')),
  idleTimeout: IDLE_TIMEOUT_SECONDS,
  fetch: answer,
});
