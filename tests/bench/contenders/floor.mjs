/** The floor: the mapping by hand on `Bun.serve` and `fetch`, without refresh, sign-in and limits. */

import { withAccessLog } from './access-log.mjs';
import {
  accessToken,
  copyResponseHeaders,
  corsHeaders,
  HOST,
  ORIGINS,
  PATHS,
  PORT,
  PROXY_PREFIX,
  READ_TIMEOUT_MS,
  requestHeaders,
  STREAM_TIMEOUT_MS,
  UPSTREAM_URL,
} from './mapping.mjs';

async function respond(request, facts) {
  const origin = request.headers.get('origin');
  if (!ORIGINS.has(origin)) return refuse(403, 'Origin is not allowed.', origin);
  const target = targetOf(request.url);
  if (target === undefined) return refuse(404, 'Not found.', origin);
  const token = accessToken(request.headers.get('cookie'));
  if (!token) return refuse(401, 'Not signed in.', origin);
  try {
    return await relay(request, facts, target, token, origin);
  } catch {
    return refuse(502, 'The music service cannot be reached.', origin);
  }
}

function targetOf(address) {
  const { pathname, search } = new URL(address);
  const path = PATHS[pathname];
  const isGeneration = pathname === '/api/music/generate';
  if (path !== undefined) {
    return { path, timeoutMs: isGeneration ? STREAM_TIMEOUT_MS : READ_TIMEOUT_MS, isGeneration };
  }
  if (!pathname.startsWith(`${PROXY_PREFIX}/v1/`)) return undefined;
  return { path: pathname.slice(PROXY_PREFIX.length) + search, timeoutMs: STREAM_TIMEOUT_MS, isGeneration };
}

async function relay(request, facts, { path, timeoutMs, isGeneration }, token, origin) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, timeoutMs);
  // A generation is paid for: it goes on when its client has disconnected.
  const signal = isGeneration ? undefined : request.signal;
  signal?.addEventListener('abort', abort, { once: true });
  try {
    const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
    const sentAt = performance.now();
    const response = await fetch(UPSTREAM_URL + path, {
      method: request.method,
      headers: requestHeaders((name) => request.headers.get(name), token),
      ...(hasBody ? { body: await request.arrayBuffer() } : {}),
      signal: controller.signal,
      redirect: 'manual',
      decompress: false,
      timeout: 300_000,
    });
    facts.upstreamMs = performance.now() - sentAt;
    const headers = new Headers(corsHeaders(origin));
    copyResponseHeaders(response.headers, headers);
    return new Response(response.body, { status: response.status, headers });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}

function refuse(status, message, origin) {
  return Response.json({ error: { message } }, { status, headers: corsHeaders(origin) });
}

// Bun's idle timeout at its longest: a generation may be silent for minutes.
Bun.serve({ hostname: HOST, port: PORT, idleTimeout: 255, fetch: withAccessLog(respond) });
