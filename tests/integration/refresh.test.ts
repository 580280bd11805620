import { describe, expect, it } from 'bun:test';
import type { Received } from '../support/scripted-upstream.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  expectCleared,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  storedTokens,
  type World,
} from '../support/world.ts';

const RENEWED = { access_token: 'access-2', refresh_token: 'refresh-2', expires_in: 120 };
const NEW_TOKENS = { svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' };

/** Answers 401 to every access token but the renewed one. */
function onlyRenewed(answer: () => Response) {
  return ({ headers }: Received) =>
    headers.get('authorization') === 'Bearer access-2'
      ? answer()
      : Response.json({ error: { message: 'expired' } }, { status: 401 });
}

/** Every route that calls the upstream with the session, and what it answers once it has been let in. */
const ROUTES = [
  {
    name: 'GET /api/auth/session',
    call: 'GET /v1/me',
    send: (world: World, cookie: string) => world.request('/api/auth/session', { cookie }),
  },
  {
    name: 'GET /api/music/models',
    call: 'GET /v1/models',
    send: (world: World, cookie: string) => world.request('/api/music/models', { cookie }),
  },
  {
    name: 'POST /api/music/generate',
    call: 'POST /v1/music',
    send: (world: World, cookie: string) =>
      world.request('/api/music/generate', {
        cookie,
        headers: { 'idempotency-key': 'key-1' },
        json: { model: 'm', prompt: 'p', music_length_ms: 3000 },
      }),
  },
  {
    name: 'the proxy',
    call: 'PATCH /v1/music/creations/1',
    send: (world: World, cookie: string) =>
      world.request('/api/upstream/v1/music/creations/1', {
        cookie,
        method: 'PATCH',
        headers: { 'content-type': 'application/json', 'idempotency-key': 'key-1' },
        body: '{"is_public":true}',
      }),
  },
];

describe.each(ROUTES)('refreshing on $name', ({ call, send }) => {
  it('refreshes once after a 401, stores the new pair and repeats the call as it was', async () => {
    await using world = startWorld();
    world.upstream.on(
      call,
      onlyRenewed(() => Response.json({ it: 'works' })),
    );
    world.upstream.on('POST /v1/auth/refresh', () => Response.json(RENEWED));
    const response = await send(world, SIGNED_IN);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ it: 'works' });
    expect(response.headers.getSetCookie()).toEqual([
      'svc_music_access=access-2; Path=/; Max-Age=120; HttpOnly; SameSite=Lax',
      'svc_music_refresh=refresh-2; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
    ]);
    expect(world.upstream.calls).toEqual([call, 'POST /v1/auth/refresh', call]);
    const [first, refresh, second] = world.upstream.received;
    expect(refresh?.body).toBe('{"refresh_token":"refresh-1"}');
    expect(refresh?.headers.get('content-type')).toBe('application/json');
    expect(refresh?.headers.get('authorization')).toBeNull();
    expect(second?.body).toBe(first?.body ?? 'none');
    expect(second?.headers.get('idempotency-key')).toBe(first?.headers.get('idempotency-key') ?? null);
  });

  it('refreshes at most once: a second 401 passes through with the new pair stored', async () => {
    await using world = startWorld();
    world.upstream.on(call, () => Response.json({ error: { message: 'still no' } }, { status: 401 }));
    world.upstream.on('POST /v1/auth/refresh', () => Response.json(RENEWED));
    const response = await send(world, SIGNED_IN);
    expect(await envelopeMessage(response, 401)).toBe('still no');
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
    expect(world.upstream.calls).toEqual([call, 'POST /v1/auth/refresh', call]);
  });

  it('keeps the new pair when the repeated call fails', async () => {
    await using world = startWorld({ TIMEOUT_READ_MS: '1000', TIMEOUT_STREAM_MS: '1000' });
    const never = Promise.withResolvers<Response>();
    world.upstream.on(call, ({ headers }) =>
      headers.get('authorization') === 'Bearer access-2' ? never.promise : new Response('', { status: 401 }),
    );
    world.upstream.on('POST /v1/auth/refresh', () => Response.json(RENEWED));
    const response = await send(world, SIGNED_IN);
    await envelopeMessage(response, 502);
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
    never.resolve(new Response());
  });

  it.each([
    ['refuses', () => Response.json({ error: { message: 'revoked' } }, { status: 401 })],
    ['fails', () => new Response('oops', { status: 500 })],
    ['redirects', () => new Response(null, { status: 307, headers: { location: '/v1/elsewhere' } })],
    ['gives no JSON', () => new Response('welcome')],
    ['gives no pair', () => Response.json({ access_token: 'access-2' })],
    ['gives a token that no header can carry', () => Response.json({ ...RENEWED, access_token: 'a b' })],
  ])('answers 401 and clears both cookies when the refresh %s', async (_, refusal) => {
    await using world = startWorld();
    world.upstream.on(call, () => new Response('', { status: 401 }));
    world.upstream.on('POST /v1/auth/refresh', refusal);
    const response = await send(world, SIGNED_IN);
    expect(await envelopeMessage(response, 401)).toContain('session has ended');
    expectCleared(response);
    expect(world.upstream.calls).toEqual([call, 'POST /v1/auth/refresh']);
  });

  it('gives the first answer, cookies unchanged, when the refresh throws', async () => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '50' });
    const never = Promise.withResolvers<Response>();
    world.upstream.on(call, () => Response.json({ error: { message: 'expired' } }, { status: 401 }));
    world.upstream.on('POST /v1/auth/refresh', () => never.promise);
    const response = await send(world, SIGNED_IN);
    expect(await envelopeMessage(response, 401)).toBe('expired');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=http_response_timeout');
    never.resolve(new Response());
  });

  it.each([
    ['sign-out', 429],
    ['sign-out', 503],
    ['keep', 429],
    ['keep', 503],
    ['keep', 400],
  ])('with REFRESH_OUTAGE=%s does what is set when the refresh gets a %i', async (outage, status) => {
    await using world = startWorld({ REFRESH_OUTAGE: outage });
    world.upstream.on(call, () => Response.json({ error: { message: 'expired' } }, { status: 401 }));
    world.upstream.on('POST /v1/auth/refresh', () => new Response('', { status }));
    const isKept = outage === 'keep' && status !== 400;
    const response = await send(world, SIGNED_IN);
    const message = await envelopeMessage(response, 401);
    expect(message).toContain(isKept ? 'expired' : 'session has ended');
    expect(response.headers.getSetCookie()).toHaveLength(isKept ? 0 : 2);
    const proxyStatus = isKept ? 'music-gateway; error=destination_unavailable' : null;
    expect(response.headers.get('proxy-status')).toBe(proxyStatus);
    const line = await world.line({ status: 401 });
    expect(line).toMatchObject({
      level: status === 400 ? 'info' : 'warn',
      refresh: isKept ? 'unreachable' : 'rejected',
      upstream: [{ outcome: 401 }, { call: 'refresh', outcome: status }],
    });
  });

  it.each([429, 503])(
    'with REFRESH_OUTAGE=keep renews the session after the upstream’s %i is over',
    async (status) => {
      await using world = startWorld({ REFRESH_OUTAGE: 'keep' });
      let isOut = true;
      world.upstream.on(call, () => Response.json({ data: [] }));
      world.upstream.on('POST /v1/auth/refresh', () =>
        isOut ? new Response('', { status }) : Response.json(RENEWED),
      );
      const failed = await send(world, REFRESH_ONLY);
      await envelopeMessage(failed, 502);
      expect(failed.headers.getSetCookie()).toEqual([]);
      expect(failed.headers.get('proxy-status')).toBe('music-gateway; error=destination_unavailable');
      expect(world.upstream.calls).toEqual(['POST /v1/auth/refresh']);
      isOut = false;
      const renewed = await send(world, REFRESH_ONLY);
      expect(renewed.status).toBe(200);
      expect(storedTokens(renewed)).toEqual(NEW_TOKENS);
      expect(world.upstream.calls).toEqual(['POST /v1/auth/refresh', 'POST /v1/auth/refresh', call]);
      expect(world.upstream.last('POST /v1/auth/refresh').body).toBe('{"refresh_token":"refresh-1"}');
    },
  );

  it('does not refresh without a refresh cookie: the 401 passes through', async () => {
    await using world = startWorld();
    world.upstream.on(call, () => Response.json({ error: { message: 'expired' } }, { status: 401 }));
    const response = await send(world, ACCESS_ONLY);
    expect(await envelopeMessage(response, 401)).toBe('expired');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get('proxy-status')).toBeNull();
    expect(world.upstream.calls).toEqual([call]);
  });

  it('refreshes first when only the refresh cookie is there, and does not refresh again', async () => {
    await using world = startWorld();
    world.upstream.on(call, () => Response.json({ error: { message: 'no' } }, { status: 401 }));
    world.upstream.on('POST /v1/auth/refresh', () => Response.json(RENEWED));
    const response = await send(world, REFRESH_ONLY);
    expect(await envelopeMessage(response, 401)).toBe('no');
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
    expect(world.upstream.calls).toEqual(['POST /v1/auth/refresh', call]);
    expect(world.upstream.last(call).headers.get('authorization')).toBe('Bearer access-2');
  });

  it('answers 502, cookies unchanged, when only the refresh cookie is there and the refresh throws', async () => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '50' });
    const never = Promise.withResolvers<Response>();
    world.upstream.on('POST /v1/auth/refresh', () => never.promise);
    const response = await send(world, REFRESH_ONLY);
    await envelopeMessage(response, 502);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=http_response_timeout');
    never.resolve(new Response());
  });

  it.each([403, 429, 500, 503])('neither refreshes nor repeats after %i', async (status) => {
    await using world = startWorld();
    world.upstream.on(call, () => Response.json({ error: { message: 'no' } }, { status }));
    const response = await send(world, SIGNED_IN);
    expect(response.status).toBe(status);
    expect(world.upstream.calls).toEqual([call]);
  });
});

describe('concurrent refreshes', () => {
  it('are one refresh for requests with the same refresh token, and all get the new cookies', async () => {
    await using world = startWorld();
    const refresh = Promise.withResolvers<Response>();
    world.upstream.on('GET /v1/models', ({ headers }) => {
      if (headers.get('authorization') === 'Bearer access-2') return Response.json({ data: [] });
      return new Response('', { status: 401 });
    });
    world.upstream.on('POST /v1/auth/refresh', () => refresh.promise);
    const requests = Array.from({ length: 30 }, () =>
      world.request('/api/music/models', { cookie: SIGNED_IN }),
    );
    await world.upstream.arrived('GET /v1/models', 30);
    await world.roundTrip();
    refresh.resolve(Response.json(RENEWED));
    for (const response of await Promise.all(requests)) {
      expect(response.status).toBe(200);
      expect(storedTokens(response)).toEqual(NEW_TOKENS);
    }
    expect(world.upstream.calls.filter((call) => call === 'POST /v1/auth/refresh')).toHaveLength(1);
  });

  it('stay apart for different refresh tokens', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/me', ({ headers }) => {
      const token = headers.get('authorization') ?? '';
      return token.includes('new') ? new Response(token) : new Response('', { status: 401 });
    });
    world.upstream.on('POST /v1/auth/refresh', ({ body }) => {
      const { refresh_token: spent } = JSON.parse(body);
      return Response.json({ access_token: `new-of-${spent}`, refresh_token: `next-of-${spent}` });
    });
    const send = (user: string) =>
      world.request('/api/auth/session', { cookie: `svc_music_access=old; svc_music_refresh=${user}` });
    const [ada, ben] = await Promise.all([send('ada'), send('ben')]);
    expect(await ada.text()).toBe('Bearer new-of-ada');
    expect(await ben.text()).toBe('Bearer new-of-ben');
    expect(storedTokens(ada)).toEqual({ svc_music_access: 'new-of-ada', svc_music_refresh: 'next-of-ada' });
    expect(storedTokens(ben)).toEqual({ svc_music_access: 'new-of-ben', svc_music_refresh: 'next-of-ben' });
  });

  it('go on when the client that began them has gone', async () => {
    await using world = startWorld();
    const refresh = Promise.withResolvers<Response>();
    world.upstream.on(
      'GET /v1/me',
      onlyRenewed(() => Response.json({})),
    );
    world.upstream.on('POST /v1/auth/refresh', () => refresh.promise);
    const gone = new AbortController();
    const first = world.request('/api/auth/session', { cookie: SIGNED_IN, signal: gone.signal });
    await world.upstream.arrived('POST /v1/auth/refresh');
    const second = world.request('/api/auth/session', { cookie: SIGNED_IN });
    gone.abort();
    await expect(first).rejects.toThrow();
    await world.upstream.arrived('GET /v1/me', 2);
    await world.roundTrip();
    refresh.resolve(Response.json(RENEWED));
    const response = await second;
    expect(response.status).toBe(200);
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
    expect(world.upstream.calls.filter((call) => call === 'POST /v1/auth/refresh')).toHaveLength(1);
  });
});

describe('token bytes', () => {
  const TOKENS = [
    '1|abc',
    '100%',
    '{"a":1}',
    '[1]',
    '12345',
    'true',
    'a+b',
    'a%2Bb',
    'a;b,c',
    '"quoted"',
    '~!@#$^&*()=\\',
  ];

  it.each(TOKENS)('of %s reach the upstream unchanged after a round through the cookies', async (token) => {
    await using world = startWorld();
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', () =>
      Response.json({ access_token: token, refresh_token: `r${token}` }),
    );
    world.upstream.on('GET /v1/me', () => new Response('', { status: 401 }));
    world.upstream.on('POST /v1/auth/refresh', () => new Response('', { status: 400 }));
    const signedIn = await world.request('/api/auth/idp', {
      json: { code: 'c', code_verifier: 'v'.repeat(43) },
    });
    const cookie = signedIn.headers
      .getSetCookie()
      .map((header) => header.split(';')[0])
      .join('; ');
    await world.request('/api/auth/session', { cookie });
    expect(world.upstream.last('GET /v1/me').headers.get('authorization')).toBe(`Bearer ${token}`);
    expect(JSON.parse(world.upstream.last('POST /v1/auth/refresh').body)).toEqual({
      refresh_token: `r${token}`,
    });
  });
});
