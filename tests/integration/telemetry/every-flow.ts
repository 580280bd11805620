/** Every flow through a gateway, with a marked secret wherever a secret can be. */

import { rawRequest } from '../../support/raw-http.ts';
import type { Received, ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { ORIGIN } from '../../support/world.ts';

/** In every token, code, verifier, prompt, path, query, header and body of the flows. */
export const MARK = 's3cr3t';
/** Of the client, as the proxy in front names it. */
export const CLIENT_ADDRESS = '203.0.113.7';

const GRANT = { code: `${MARK}-code`, code_verifier: `${MARK}-verifier`.padEnd(43, 'v') };
const ORDER = { model: `${MARK}-model`, prompt: `${MARK}-prompt`, music_length_ms: 3000 };
const PAIR = { access_token: `${MARK}-access-2`, refresh_token: `${MARK}-refresh-2` };
const LARGE_PAIR = { ...PAIR, access_token: MARK.repeat(1000) };
const PROXIED = `/v1/${MARK}?token=${MARK}`;
const SILENT = `/v1/${MARK}/silent`;

const refuse = (status: number) => Response.json({ error: { message: `${MARK}-message` } }, { status });
const never = () => new Promise<Response>(() => {});

/** Scripts what the flows need: what a code, a token or a key contains decides the response, which has a secret. */
export function scriptEveryFlow(upstream: ScriptedUpstream): void {
  const tokens = ({ body }: Received) => Response.json(body.includes('large') ? LARGE_PAIR : PAIR);
  upstream
    .on('POST /oauth/token', ({ body }) => {
      const fail = (status: number, error: string) =>
        Response.json({ error, error_description: MARK }, { status });
      if (body.includes('unknown-client')) return fail(401, 'invalid_client');
      if (body.includes('refused')) return fail(400, `${MARK}-error`);
      if (body.includes('broken')) return new Response(MARK, { status: 500 });
      if (body.includes('other-names')) return Response.json({ [MARK]: MARK });
      return Response.json({ access_token: `${MARK}-identity${body.includes('large') ? '-large' : ''}` });
    })
    .on('POST /v1/auth/idp', tokens)
    .on('GET /v1/me', ({ headers }) => {
      const isExpired = headers.get('authorization')?.includes('expired');
      return isExpired ? refuse(401) : Response.json({ email: `${MARK}@mail.test` });
    })
    .on('POST /v1/auth/refresh', (received) => {
      if (received.body.includes('rejected')) return refuse(400);
      if (received.body.includes('malformed')) return new Response(`${MARK} is not JSON`);
      return received.body.includes('unreachable') ? never() : tokens(received);
    })
    .on('POST /v1/auth/logout', () => refuse(500))
    .on('GET /v1/models', () => refuse(503))
    .on('POST /v1/music', ({ headers }) => {
      const key = headers.get('idempotency-key') ?? '';
      if (key.endsWith('late')) return never();
      if (key.endsWith('refused')) return refuse(422);
      return new Response(MARK.repeat(10_000), { headers: { 'x-generation-id': `${MARK}-generation` } });
    })
    .on(`PUT ${PROXIED}`, () => refuse(500))
    .on(`GET ${PROXIED}`, () => {
      const location = `${upstream.upstreamUrl}/v1/next?access_token=${MARK}`;
      return new Response(null, { status: 302, headers: { location, 'set-cookie': `a=${MARK}` } });
    })
    .on(`GET ${SILENT}`, never)
    .on(`GET /v1/music/public/${MARK}`, () => Response.json({ title: MARK }));
}

/** Sends one request with that id, and returns the values of the cookies in the response. */
type Flow = (gateway: { readonly url: string }, id: string, upstream: ScriptedUpstream) => Promise<string[]>;

export const EVERY_FLOW: readonly Flow[] = [
  ...['code', 'refused', 'broken', 'other-names', 'unknown-client', 'large'].map((code) =>
    post('/api/auth/idp', { ...GRANT, code: `${MARK}-${code}` }),
  ),
  post('/api/auth/idp', { ...GRANT, code_verifier: MARK }),
  ...['renewed', 'rejected', 'malformed', 'unreachable', 'large'].map(refreshing),
  ...['', '-refused', '-late'].map((key) => post('/api/music/generate', ORDER, `${MARK}${key}`)),
  post('/api/music/generate', { ...ORDER, music_length_ms: MARK }),
  post('/api/music/generate', `{"prompt": "${MARK}`),
  post('/api/music/generate', MARK.repeat(400_000)),
  post('/api/auth/logout', {}),
  send('/api/auth/session'),
  send('/api/music/models'),
  send('/api/music/models', { headers: { origin: `https://${MARK}.test` } }),
  send(`/api/upstream${PROXIED}`),
  send(`/api/upstream${PROXIED}`, { method: 'PUT', body: MARK }),
  send(`/api/upstream/v1/auth/${MARK}?token=${MARK}`),
  send(`/api/upstream/v1/music/public/${MARK}`),
  send(`/${MARK}`, { method: 'PROPFIND' }),
  send(`/${MARK}?token=${MARK}`),
  async ({ url }, id, upstream) => {
    const client = new AbortController();
    const headers = { ...SIGNED_IN, 'x-request-id': id };
    const gone = fetch(`${url}/api/upstream${SILENT}`, { headers, signal: client.signal });
    await upstream.arrived(`GET ${SILENT}`);
    client.abort();
    return gone.then(() => []).catch(() => []);
  },
  async ({ url }, id) => {
    const lines = [
      `GET /api/music/models HTTP/1.1\r\nHost: ${MARK}\r\nOrigin: ${ORIGIN}`,
      `Cookie: svc_music_access=${MARK}"{\r\nX-Request-Id: ${id}\r\nTraceparent: 00-${MARK}`,
      `User-Agent: ${MARK}\r\nX-Forwarded-For: ${MARK}\r\nConnection: close\r\n\r\n`,
    ];
    await rawRequest(Number(new URL(url).port), lines.join('\r\n'));
    return [];
  },
];

/** Sent when the other flows have ended: the token was renewed before. */
export const REPLAY: Flow = refreshing('renewed');

const SIGNED_IN = {
  origin: ORIGIN,
  cookie: `svc_music_access=${MARK}-access; svc_music_refresh=${MARK}-refresh; other=${MARK}`,
  'content-type': 'application/json',
  'x-forwarded-for': CLIENT_ADDRESS,
};

function refreshing(token: string): Flow {
  const cookie = `svc_music_access=${MARK}-expired; svc_music_refresh=${MARK}-${token}`;
  return send('/api/auth/session', { headers: { cookie } });
}

function post(path: string, body: unknown, key = MARK): Flow {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return send(path, { method: 'POST', body: text, headers: { 'idempotency-key': key } });
}

function send(path: string, init: { method?: string; body?: string; headers?: object } = {}): Flow {
  return async ({ url }, id) => {
    const headers = { ...SIGNED_IN, 'x-request-id': id, ...init.headers };
    const response = await fetch(url + path, { ...init, headers, redirect: 'manual' });
    await response.arrayBuffer().catch(() => {});
    return response.headers.getSetCookie().flatMap((cookie) => Bun.Cookie.parse(cookie).value || []);
  };
}
