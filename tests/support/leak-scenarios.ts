/** Every flow through a gateway, with a marked secret wherever a secret can be. */

import { rawRequest } from './raw-http.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';
import { ORIGIN } from './world.ts';

/** In every token, code, verifier, prompt, path, query, header and body of the flows. */
export const MARK = 's3cr3t';

/** Of the client, as the proxy in front names it. */
export const CLIENT_ADDRESS = '203.0.113.7';

const GRANT = { code: `${MARK}-code`, code_verifier: `${MARK}-verifier`.padEnd(43, 'v') };
const ORDER = { model: `${MARK}-model`, prompt: `${MARK}-prompt`, music_length_ms: 3000 };
const PAIR = { access_token: `${MARK}-access-2`, refresh_token: `${MARK}-refresh-2` };
const LARGE_PAIR = { ...PAIR, access_token: MARK.repeat(1000) };
const REFUSAL = { error: { message: `${MARK}-message` } };
const REFRESH_OUTCOMES = ['renewed', 'rejected', 'malformed', 'unreachable', 'too-large'] as const;

/** Scripts what the flows need; the upstream has a secret in each of its responses. */
export function scriptEveryFlow(upstream: ScriptedUpstream): void {
  upstream
    .on('POST /oauth/token', ({ body }) => {
      if (body.includes('unknown-client')) {
        return Response.json({ error: 'invalid_client', error_description: MARK }, { status: 401 });
      }
      if (body.includes('broken')) return new Response(MARK, { status: 500 });
      return body.includes('refused')
        ? Response.json({ error: `${MARK}-error`, error_description: MARK }, { status: 400 })
        : Response.json({ access_token: `${MARK}-identity${body.includes('large') ? '-large' : ''}` });
    })
    .on('POST /v1/auth/idp', ({ body }) => Response.json(body.includes('large') ? LARGE_PAIR : PAIR))
    .on('GET /v1/me', ({ headers }) =>
      headers.get('authorization')?.includes('expired')
        ? Response.json(REFUSAL, { status: 401 })
        : Response.json({ email: `${MARK}@mail.test` }),
    )
    .on('POST /v1/auth/refresh', ({ body }) => {
      if (body.includes('rejected')) return Response.json(REFUSAL, { status: 400 });
      if (body.includes('malformed')) return new Response(`${MARK} is not JSON`);
      if (body.includes('unreachable')) return new Promise(() => {});
      return Response.json(body.includes('too-large') ? LARGE_PAIR : PAIR);
    })
    .on('POST /v1/auth/logout', () => Response.json(REFUSAL, { status: 500 }))
    .on('GET /v1/models', () => Response.json(REFUSAL, { status: 503 }))
    .on('POST /v1/music', ({ headers }) => {
      const key = headers.get('idempotency-key') ?? '';
      if (key.endsWith('late')) return new Promise(() => {});
      if (key.endsWith('refused')) return Response.json(REFUSAL, { status: 422 });
      return new Response(MARK.repeat(10_000), { headers: { 'x-generation-id': `${MARK}-generation` } });
    })
    .on(`PUT /v1/${MARK}?token=${MARK}`, () => Response.json(REFUSAL, { status: 500 }))
    .on(`GET /v1/${MARK}?code=${MARK}`, () => {
      const location = `${upstream.upstreamUrl}/v1/next?access_token=${MARK}`;
      return new Response(null, { status: 302, headers: { location, 'set-cookie': `a=${MARK}` } });
    })
    .on(`GET /v1/music/public/${MARK}`, () => Response.json({ title: MARK }));
}

interface Flow {
  readonly name: string;
  /** Sends one request with that id, and returns the values of the cookies in the response. */
  readonly run: (gateway: { url: string }, id: string) => Promise<string[]>;
}

export const EVERY_FLOW: readonly Flow[] = [
  post('sign-in', '/api/auth/idp', GRANT),
  signInWithCode('refused'),
  signInWithCode('broken'),
  signInWithCode('unknown-client'),
  signInWithCode('large'),
  post('sign-in that is not valid', '/api/auth/idp', { ...GRANT, code_verifier: MARK }),
  get('session check', '/api/auth/session'),
  ...REFRESH_OUTCOMES.map(refresh),
  refresh('renewed'),
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
  send('an unknown origin', '/api/music/models', { headers: { origin: `https://${MARK}.test` } }),
  send('an unknown method', `/${MARK}`, { method: 'PROPFIND' }),
  get('an unknown path', `/${MARK}?token=${MARK}`),
  post('sign-out', '/api/auth/logout', {}),
  {
    name: 'a client that disconnects',
    async run({ url }, id) {
      const signal = AbortSignal.timeout(100);
      const headers = { ...SIGNED_IN, 'x-request-id': id, 'idempotency-key': `${MARK}-late` };
      const body = JSON.stringify(ORDER);
      await fetch(`${url}/api/music/generate`, { method: 'POST', headers, body, signal }).catch(() => {});
      return [];
    },
  },
  {
    name: 'headers that are not valid',
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
const SIGNED_IN = {
  origin: ORIGIN,
  cookie: COOKIES,
  'content-type': 'application/json',
  'x-forwarded-for': CLIENT_ADDRESS,
};

/** What the code contains decides how the identity provider or the upstream responds. */
function signInWithCode(kind: string): Flow {
  return post(`sign-in: ${kind}`, '/api/auth/idp', { ...GRANT, code: `${MARK}-${kind}` });
}

/** What the refresh token contains decides the outcome; a token that was sent before is replayed. */
function refresh(kind: string): Flow {
  const cookie = `svc_music_access=${MARK}-expired; svc_music_refresh=${MARK}-${kind}`;
  return get(`refresh: ${kind}`, '/api/auth/session', { cookie });
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
