import { describe, expect, it } from 'bun:test';
import { messages } from '../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import {
  envelopeMessage,
  ORIGIN,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  type World,
} from '../support/world.ts';

const ME = 'GET /v1/me';
const REFRESH = 'POST /v1/auth/refresh';
const NEW_PAIR = { access_token: 'access-2', refresh_token: 'refresh-2', expires_in: 600 };
const NEW_COOKIES = [
  'svc_music_access=access-2; Path=/; Max-Age=600; HttpOnly; SameSite=Lax',
  'svc_music_refresh=refresh-2; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
];
/** Nothing listens there. */
const CLOSED = 'http://127.0.0.1:1';

describe('GET /api/auth/session without a session', () => {
  it.each([
    ['no cookie', undefined],
    [
      'only other cookies',
      'theme=dark; svc_music=x; SVC_MUSIC_ACCESS=access-1; xsvc_music_refresh=refresh-1',
    ],
    ['empty session cookies', 'svc_music_access=; svc_music_refresh='],
    ['values that no token can have', 'svc_music_access=a%20b; svc_music_refresh=r%0d%0ax:%20y'],
  ])('answers that nobody is signed in to a request with %s', async (_, cookie) => {
    await using world = startWorld();
    const response = await world.request('/api/auth/session', cookie === undefined ? {} : { cookie });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.text()).toBe('{"authenticated":false}');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });

  it('says so for a session cookie that comes twice, with the reason in the log', async () => {
    await using world = startWorld();
    const response = await world.request('/api/auth/session', { cookie: `${SIGNED_IN}; ${SIGNED_IN}` });
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.text()).toBe('{"authenticated":false}');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
    const line = await world.line({ route: '/api/auth/session' });
    expect(line).toMatchObject({ level: 'info', status: 200, reason: 'sessionCookieTwice' });
  });

  it.each([
    ['missing', null],
    ['not allowed', 'https://elsewhere.test'],
    ['null', 'null'],
    ['an allowed one with a path', `${ORIGIN}/`],
  ])('answers 403 when the Origin is %s', async (_, origin) => {
    await using world = startWorld();
    const response = await world.request('/api/auth/session', { origin, cookie: SIGNED_IN });
    expect(await envelopeMessage(response, 403)).toBe(messages.originNotAllowed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('GET /api/auth/session', () => {
  it('asks the upstream for the profile with the access token, and with nothing of the browser', async () => {
    await using world = startWorld();
    world.upstream.on(ME, () => Response.json({ name: 'Asha' }));
    const response = await world.request('/api/auth/session', {
      cookie: `${SIGNED_IN}; theme=dark`,
      headers: { accept: 'text/html', authorization: 'Bearer from-the-browser' },
    });
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual([ME]);
    const { headers, body } = world.upstream.last(ME);
    expect(headers.get('authorization')).toBe('Bearer access-1');
    expect(headers.get('accept')).toBe('application/json');
    expect(headers.get('cookie')).toBeNull();
    expect(headers.get('origin')).toBeNull();
    expect(body).toBe('');
  });

  it('does not pass a query on', async () => {
    await using world = startWorld();
    world.upstream.on(ME, () => Response.json({}));
    const response = await world.request('/api/auth/session?fields=all', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual([ME]);
  });

  it('answers with the text and content type of the profile, and nothing else of the answer', async () => {
    const profile = ' {"data" : {"id":12345678901234567890, "name":"Ash\\u00e1"}}\n';
    await using world = startWorld();
    world.upstream.on(
      ME,
      () =>
        new Response(profile, {
          headers: {
            'content-type': 'application/vnd.profile+json; charset=utf-8',
            'cache-control': 'public, max-age=60',
            'set-cookie': 'upstream=1',
            'x-upstream': 'node-7',
            etag: '"1"',
          },
        }),
    );
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(profile);
    expect(response.headers.get('content-type')).toBe('application/vnd.profile+json; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get('x-upstream')).toBeNull();
    expect(response.headers.get('etag')).toBeNull();
  });

  it('decodes a compressed profile', async () => {
    await using world = startWorld();
    world.upstream.on(
      ME,
      () =>
        new Response(Bun.gzipSync(Buffer.from('{"name":"Asha"}')), {
          headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        }),
    );
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-encoding')).toBeNull();
    expect(await response.json()).toEqual({ name: 'Asha' });
  });

  it('answers that the user is signed in when the upstream knows no profile', async () => {
    await using world = startWorld();
    world.upstream.on(ME, () => Response.json({ message: 'no profile' }, { status: 404 }));
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.text()).toBe('{"authenticated":true}');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([ME]);
  });

  it.each([201, 302, 400, 403, 409, 410, 429, 500, 502, 503])(
    'passes on status %i with text and content type, and does not try again',
    async (status) => {
      await using world = startWorld();
      world.upstream.on(
        ME,
        () =>
          new Response(`upstream says ${status}`, {
            status,
            headers: { 'content-type': 'text/x-odd', location: '/v1/elsewhere' },
          }),
      );
      const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
      expect(response.status).toBe(status);
      expect(await response.text()).toBe(`upstream says ${status}`);
      expect(response.headers.get('content-type')).toBe('text/x-odd');
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(world.upstream.calls).toEqual([ME]);
    },
  );

  it('passes on an answer without a body', async () => {
    await using world = startWorld();
    world.upstream.on(ME, () => new Response(null, { status: 204 }));
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(response.status).toBe(204);
    expect(await response.text()).toBe('');
  });
});

describe('GET /api/auth/session refreshing', () => {
  it('refreshes after a 401, asks once more and sets the new cookies', async () => {
    await using world = startWorld();
    scriptProfile(world);
    world.upstream.on(REFRESH, () => Response.json(NEW_PAIR));
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ name: 'Asha' });
    expect(response.headers.getSetCookie()).toEqual(NEW_COOKIES);
    expect(world.upstream.calls).toEqual([ME, REFRESH, ME]);
    expect(authorizations(world)).toEqual(['Bearer access-1', null, 'Bearer access-2']);
  });

  it('sends the refresh token as JSON, and no cookie', async () => {
    await using world = startWorld();
    scriptProfile(world);
    world.upstream.on(REFRESH, () => Response.json(NEW_PAIR));
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    const { headers, body } = world.upstream.last(REFRESH);
    expect(body).toBe('{"refresh_token":"refresh-1"}');
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('accept')).toBe('application/json');
    expect(headers.get('cookie')).toBeNull();
  });

  it('makes the new cookies Secure in production', async () => {
    await using world = startWorld({ NODE_ENV: 'production' });
    scriptProfile(world);
    world.upstream.on(REFRESH, () => Response.json({ data: NEW_PAIR }));
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(response.headers.getSetCookie()).toEqual([
      'svc_music_access=access-2; Path=/; Max-Age=600; Secure; HttpOnly; SameSite=Lax',
      'svc_music_refresh=refresh-2; Path=/; Max-Age=2592000; Secure; HttpOnly; SameSite=Lax',
    ]);
  });

  it('sets the new cookies also when the upstream then knows no profile', async () => {
    await using world = startWorld();
    world.upstream
      .on(ME, () => new Response(null, { status: 404 }))
      .on(REFRESH, () => Response.json(NEW_PAIR));
    const response = await world.request('/api/auth/session', { cookie: REFRESH_ONLY });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('{"authenticated":true}');
    expect(response.headers.getSetCookie()).toEqual(NEW_COOKIES);
  });

  it('answers 502 and logs it when a new token is too large for a cookie', async () => {
    await using world = startWorld();
    scriptProfile(world);
    world.upstream.on(REFRESH, () => Response.json({ ...NEW_PAIR, refresh_token: 'r'.repeat(4096) }));
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(await envelopeMessage(response, 502)).toBe(messages.tokensTooLarge.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.log).toHaveLength(1);
    expect(world.log.join()).not.toContain('rrrr');
  });
});

describe('GET /api/auth/session when the upstream is away', () => {
  it('answers 502 when it cannot be reached', async () => {
    await using world = startWorld({ UPSTREAM_URL: CLOSED });
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    const message = await envelopeMessage(response, 502);
    expect(message).toBe(messages.upstreamUnreachable.en);
    expect(message).not.toContain('127.0.0.1');
    expect(response.headers.getSetCookie()).toEqual([]);
    // A name and a code: the message of an error can quote what was sent.
    expect(world.log).toHaveLength(1);
    expect(world.lines.at(-1)).toMatchObject({
      level: 'warn',
      method: 'GET',
      route: '/api/auth/session',
      status: 502,
      reason: 'upstreamUnreachable',
      cause: 'TypeError ECONNREFUSED',
      upstream: [{ call: 'me', outcome: 'connection_refused' }],
    });
  });

  it('answers 502 when it does not answer in time', async () => {
    await using world = startWorld({ TIMEOUT_READ_MS: '50' });
    const never = Promise.withResolvers<Response>();
    world.upstream.on(ME, () => never.promise);
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(await envelopeMessage(response, 502)).toBe(messages.upstreamTimeout.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([ME]);
    never.resolve(new Response());
  });

  it.each([
    ['closes the connection', ''],
    ['breaks off its answer', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"name":'],
    ['does not speak HTTP', '220 mail.test ESMTP\r\n\r\n'],
  ])('answers 502 when it %s', async (_, bytes) => {
    await using upstream = await startRawUpstream((socket) => socket.end(bytes));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(await envelopeMessage(response, 502)).toBe(messages.upstreamUnreachable.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.log).toHaveLength(1);
  });
});

/** Knows the profile for `access-2`; any other access token has expired. */
function scriptProfile({ upstream }: World): void {
  upstream.on(ME, ({ headers }) =>
    headers.get('authorization') === 'Bearer access-2'
      ? Response.json({ name: 'Asha' })
      : Response.json({ message: 'expired' }, { status: 401 }),
  );
}

function authorizations({ upstream }: World): (string | null)[] {
  return upstream.received.map(({ headers }) => headers.get('authorization'));
}
