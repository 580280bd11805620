/** Every flow through a gateway, with a marked secret wherever a secret can be: for a look at what it gives away. */

import { rawRequest } from './raw-http.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';
import { ORIGIN } from './world.ts';

/** In every token, code, verifier, prompt, path, query, header and body of the flows. */
export const MARK = 's3cr3t';

const GRANT = { code: `${MARK}-code`, code_verifier: `${MARK}-verifier`.padEnd(43, 'v') };
const ORDER = { model: `${MARK}-model`, prompt: `${MARK}-prompt`, music_length_ms: 3000 };
const PAIR = { access_token: `${MARK}-access-2`, refresh_token: `${MARK}-refresh-2` };
/** One refresh token for each thing that can become of it. */
const REFRESHES = ['renewed', 'rejected', 'malformed', 'unreachable', 'too-large'] as const;

/** Scripts what the flows need; the upstream has a secret in each of its answers. */
export function scriptEveryFlow(upstream: ScriptedUpstream): void {
  const told = { error: { message: `${MARK}-told` } };
  upstream.on('POST /oauth/token', ({ body }) => {
    if (body.includes('unknown-client')) {
      return Response.json({ error: 'invalid_client', error_description: MARK }, { status: 401 });
    }
    if (body.includes('broken')) return new Response(MARK, { status: 500 });
    return body.includes('refused')
      ? Response.json({ error: `${MARK}-error`, error_description: MARK }, { status: 400 })
      : Response.json({ access_token: `${MARK}-identity${body.includes('large') ? '-large' : ''}` });
  });
  upstream.on('POST /v1/auth/idp', ({ body }) =>
    Response.json(body.includes('large') ? { ...PAIR, access_token: MARK.repeat(1000) } : PAIR),
  );
  upstream.on('GET /v1/me', ({ headers }) =>
    headers.get('authorization')?.includes('expired')
      ? Response.json(told, { status: 401 })
      : Response.json({ email: `${MARK}@mail.test` }),
  );
  upstream.on('POST /v1/auth/refresh', ({ body }) => {
    if (body.includes('rejected')) return Response.json(told, { status: 400 });
    if (body.includes('malformed')) return new Response(`${MARK} is not JSON`);
    if (body.includes('unreachable')) return new Promise(() => {});
    return Response.json(body.includes('too-large') ? { ...PAIR, access_token: MARK.repeat(1000) } : PAIR);
  });
  upstream.on('POST /v1/auth/logout', () => Response.json(told, { status: 500 }));
  upstream.on('GET /v1/models', () => Response.json(told, { status: 503 }));
  upstream.on('POST /v1/music', ({ headers }) => {
    const key = headers.get('idempotency-key') ?? '';
    if (key.endsWith('late')) return new Promise(() => {});
    if (key.endsWith('refused')) return Response.json(told, { status: 422 });
    return new Response(MARK.repeat(10_000), { headers: { 'x-generation-id': `${MARK}-generation` } });
  });
  upstream.on(`PUT /v1/${MARK}?token=${MARK}`, () => Response.json(told, { status: 500 }));
  upstream.on(`GET /v1/${MARK}?code=${MARK}`, () => {
    const location = `${upstream.upstreamUrl}/v1/next?access_token=${MARK}`;
    return new Response(null, { status: 302, headers: { location, 'set-cookie': `a=${MARK}` } });
  });
  upstream.on(`GET /v1/music/public/${MARK}`, () => Response.json({ title: MARK }));
}

export interface Flow {
  readonly name: string;
  /** Sends one request with that id, and gives the values of the cookies that came back. */
  readonly run: (gateway: { url: string }, id: string) => Promise<string[]>;
}

export const EVERY_FLOW: readonly Flow[] = [
  post('sign-in', '/api/auth/idp', GRANT),
  post('sign-in that the provider refuses', '/api/auth/idp', { ...GRANT, code: `${MARK}-refused` }),
  post('sign-in that the provider fails', '/api/auth/idp', { ...GRANT, code: `${MARK}-broken` }),
  post('sign-in by a client it does not accept', '/api/auth/idp', {
    ...GRANT,
    code: `${MARK}-unknown-client`,
  }),
  post('sign-in with tokens too large', '/api/auth/idp', { ...GRANT, code: `${MARK}-large` }),
  post('sign-in that is not valid', '/api/auth/idp', { ...GRANT, code_verifier: MARK }),
  get('session check', '/api/auth/session'),
  ...REFRESHES.map((kind) => get(`refresh: ${kind}`, '/api/auth/session', expired(kind))),
  get('refresh: replayed', '/api/auth/session', expired('renewed')),
  get('models', '/api/music/models'),
  post('generate', '/api/music/generate', ORDER, { 'idempotency-key': MARK }),
  post('generate, refused', '/api/music/generate', ORDER, { 'idempotency-key': `${MARK}-refused` }),
  post('generate, late', '/api/music/generate', ORDER, { 'idempotency-key': `${MARK}-late` }),
  post('generate, not valid', '/api/music/generate', { ...ORDER, music_length_ms: MARK }),
  post('generate, no JSON', '/api/music/generate', `{"prompt": "${MARK}`),
  post('generate, too large', '/api/music/generate', MARK.repeat(400_000)),
  get('proxy: redirect', `/api/upstream/v1/${MARK}?code=${MARK}`),
  get('proxy: outside', `/api/upstream/v1/auth/${MARK}?token=${MARK}`),
  get('public playback', `/api/upstream/v1/music/public/${MARK}`),
  send('proxy: PUT', `/api/upstream/v1/${MARK}?token=${MARK}`, { method: 'PUT', body: MARK }),
  send('a strange origin', '/api/music/models', { headers: { origin: `https://${MARK}.test` } }),
  send('a strange method', `/${MARK}`, { method: 'PROPFIND' }),
  get('nothing there', `/${MARK}?token=${MARK}`),
  post('sign-out', '/api/auth/logout', {}),
  {
    name: 'a client that goes away',
    async run({ url }, id) {
      const signal = AbortSignal.timeout(100);
      const headers = { ...SIGNED_IN, 'x-request-id': id, 'idempotency-key': `${MARK}-late` };
      const body = JSON.stringify(ORDER);
      await fetch(`${url}/api/music/generate`, { method: 'POST', headers, body, signal }).catch(() => {});
      return [];
    },
  },
  {
    name: 'headers that make no sense',
    async run({ url }, id) {
      await rawRequest(
        Number(new URL(url).port),
        `GET /api/music/models HTTP/1.1\r\nHost: ${MARK}\r\nOrigin: ${ORIGIN}\r\nCookie: svc_music_access=${MARK}"{\r\n` +
          `X-Request-Id: ${id}\r\nTraceparent: 00-${MARK}\r\nUser-Agent: ${MARK}\r\nX-Forwarded-For: ${MARK}\r\nConnection: close\r\n\r\n`,
      );
      return [];
    },
  },
];

const COOKIES = `svc_music_access=${MARK}-access; svc_music_refresh=${MARK}-refresh; other=${MARK}`;
const SIGNED_IN = { origin: ORIGIN, cookie: COOKIES, 'content-type': 'application/json' };

function expired(kind: string): Record<string, string> {
  return { cookie: `svc_music_access=${MARK}-expired; svc_music_refresh=${MARK}-${kind}` };
}

function get(name: string, path: string, headers = {}): Flow {
  return send(name, path, { headers });
}

function post(name: string, path: string, body: unknown, headers = {}): Flow {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return send(name, path, { method: 'POST', body: text, headers });
}

function send(
  name: string,
  path: string,
  { headers, ...init }: { method?: string; body?: string; headers?: object },
): Flow {
  return {
    name,
    async run({ url }, id) {
      const all = { ...SIGNED_IN, 'x-request-id': id, ...headers };
      const response = await fetch(url + path, { ...init, headers: all, redirect: 'manual' });
      await response.arrayBuffer().catch(() => {});
      return response.headers.getSetCookie().flatMap((cookie) => Bun.Cookie.parse(cookie).value || []);
    },
  };
}
