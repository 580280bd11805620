import { describe, expect, it } from 'bun:test';
import { rawRequest } from '../support/raw-http.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import {
  envelopeMessage,
  ORIGIN,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  type World,
} from '../support/world.ts';

const CREATION = '/v1/music/public/abc';

/** A request by raw socket: HTTP clients tidy the target before they send it. */
function rawGet(world: World, path: string) {
  return rawRequest(
    world.port,
    `GET /api/upstream${path} HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\nConnection: close\r\n\r\n`,
  );
}

describe('public playback', () => {
  it.each([CREATION, `${CREATION}/content`])('of %s needs no session', async (path) => {
    await using world = startWorld();
    const headers = { 'content-type': 'audio/mpeg', 'set-cookie': 'a=b', 'x-generation-id': 'g' };
    world.upstream.on(`GET ${path}`, () => new Response('audio', { headers }));
    const response = await world.request(`/api/upstream${path}`);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('audio');
    expect(response.headers.get('content-type')).toBe('audio/mpeg');
    expect(response.headers.get('x-generation-id')).toBe('g');
    expect(response.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([`GET ${path}`]);
  });

  it.each([
    ['a signed-in user', SIGNED_IN],
    ['a user with only a refresh token', REFRESH_ONLY],
  ])('never sends the credentials of %s', async (_, cookie) => {
    await using world = startWorld();
    world.upstream.on(`GET ${CREATION}`, () => new Response('audio'));
    const response = await world.request(`/api/upstream${CREATION}`, {
      cookie,
      headers: { authorization: 'Bearer from-the-browser', range: 'bytes=0-4' },
    });
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual([`GET ${CREATION}`]);
    const { headers } = world.upstream.last(`GET ${CREATION}`);
    expect(headers.get('authorization')).toBeNull();
    expect(headers.get('cookie')).toBeNull();
    expect(headers.get('origin')).toBeNull();
    expect(headers.get('range')).toBe('bytes=0-4');
  });

  it.each([401, 403, 404, 500])('passes a %d on and leaves the session alone', async (status) => {
    await using world = startWorld();
    world.upstream.on(`GET ${CREATION}`, () => new Response('not public', { status }));
    const response = await world.request(`/api/upstream${CREATION}`, { cookie: SIGNED_IN });
    expect(response.status).toBe(status);
    expect(await response.text()).toBe('not public');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([`GET ${CREATION}`]);
  });

  it.each(['a', '0', 'A-Z.a_z~9', '...', '.hidden', 'a..b', '-', '~', '_', 'content', 'v1', 'x'.repeat(500)])(
    'takes the unreserved characters of the id %s',
    async (id) => {
      await using world = startWorld();
      const path = `/v1/music/public/${id}/content`;
      world.upstream.on(`GET ${path}`, () => new Response('audio'));
      const response = await world.request(`/api/upstream${path}`);
      expect(response.status).toBe(200);
      expect(world.upstream.calls).toEqual([`GET ${path}`]);
    },
  );

  it('needs an allowed origin all the same', async () => {
    await using world = startWorld();
    const response = await world.request(`/api/upstream${CREATION}`, { origin: null });
    expect(await envelopeMessage(response, 403)).toBe('Requests from this origin are not allowed.');
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['Accept-Language', 'Origin, Accept-Language'],
    ['Accept-Encoding, origin', 'Origin, Accept-Encoding'],
    ['*', '*'],
  ])('varies by what the upstream names, too, and not by cookies: %s', async (vary, expected) => {
    await using world = startWorld();
    const headers = { vary, 'cache-control': 'public, max-age=60' };
    world.upstream.on(`GET ${CREATION}`, () => new Response('audio', { headers }));
    const response = await world.request(`/api/upstream${CREATION}`, { cookie: SIGNED_IN });
    expect(response.headers.get('vary')).toBe(expected);
    expect(response.headers.get('cache-control')).toBe('public, max-age=60');
  });

  it('sends the client’s Accept-Encoding, and Via', async () => {
    await using world = startWorld();
    world.upstream.on(`GET ${CREATION}`, () => new Response('audio'));
    const sent = { 'accept-encoding': 'gzip', 'accept-language': 'sw', 'cache-control': 'no-cache' };
    await world.request(`/api/upstream${CREATION}`, { headers: sent });
    const { headers } = world.upstream.last(`GET ${CREATION}`);
    expect(Object.fromEntries(headers)).toMatchObject({ ...sent, via: '1.1 music-gateway' });
  });

  // It did not once: the place was taken before the request was refused, and never released.
  it.each([CREATION, `${CREATION}/content`])(
    'gives its places back when a request is refused: %s',
    async (path) => {
      await using world = startWorld();
      const answer = await rawRequest(
        world.port,
        `GET /api/upstream${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nAccept: \x7f\r\nConnection: close\r\n\r\n`,
      );
      expect(answer.status).toBe(400);
      const { streams, publicDetails, streamedBodies } = world.admission;
      expect([streams, publicDetails, streamedBodies].map(({ inUse }) => inUse)).toEqual([0, 0, 0]);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  it('says 502 when the upstream gives no answer', async () => {
    await using upstream = await startRawUpstream((socket) => socket.destroy());
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request(`/api/upstream${CREATION}`);
    expect(await envelopeMessage(response, 502)).toBe('The music service cannot be reached right now.');
  });
});

/** What is close to the two public paths, as it reaches the upstream when the user is signed in. */
const NEARBY = [
  '/v1/music/public',
  '/v1/music/public/',
  '/v1/music/public//content',
  '/v1/music/public/abc/',
  '/v1/music/public/abc//content',
  '/v1/music/public/abc/content/',
  '/v1/music/public/abc/content/more',
  '/v1/music/public/abc/contents',
  '/v1/music/public/abc/Content',
  '/v1/music/public/abc/cover',
  '/v1/music/Public/abc',
  '/v1/music/private/abc',
  '/v1/music/publicabc',
  '/v1//music/public/abc',
  '/v1/v1/music/public/abc',
  '/v1/x/music/public/abc',
  '/v1/music/public/abc?download=1',
  '/v1/music/public/abc/content?token=x',
  '/v1/music/public/?/content',
  '/v1/music/public/a%62c',
  '/v1/music/public/abc%20',
  '/v1/music/public/abc%3Fdownload=1',
  '/v1/music/public/abc/%63ontent',
  '/v1/music/public/a+b',
  '/v1/music/public/a;b',
  '/v1/music/public/a@b',
  '/v1/music/public/a:b',
  '/v1/music/public/a,b',
  '/v1/music/public/a!b',
  '/v1/music/public/a(b)',
  '/v1/music/public/%C3%A9',
];

describe('what is only close to public playback', () => {
  it.each(NEARBY)('needs a session: %s', async (path) => {
    await using world = startWorld();
    const response = await world.request(`/api/upstream${path}`);
    expect(await envelopeMessage(response, 401)).toBe('You are not signed in.');
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(NEARBY)('is sent with the access token: %s', async (path) => {
    await using world = startWorld();
    world.upstream.on(`GET ${path}`, () => new Response('ok'));
    const response = await world.request(`/api/upstream${path}`, { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(world.upstream.last(`GET ${path}`).headers.get('authorization')).toBe('Bearer access-1');
  });

  it.each(['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])('needs a session: %s', async (method) => {
    await using world = startWorld();
    world.upstream.on(`${method} ${CREATION}`, () => new Response());
    const without = await world.request(`/api/upstream${CREATION}`, { method });
    expect(without.status).toBe(401);
    expect(world.upstream.calls).toEqual([]);
    const signedIn = await world.request(`/api/upstream${CREATION}`, { method, cookie: SIGNED_IN });
    expect(signedIn.status).toBe(200);
    const { headers } = world.upstream.last(`${method} ${CREATION}`);
    expect(headers.get('authorization')).toBe('Bearer access-1');
  });

  it.each(['??', '?#', '/content?', '?/content', ' '])(
    'does not take the public branch with "%s" after the id',
    async (suffix) => {
      await using world = startWorld();
      const answer = await rawGet(world, CREATION + suffix);
      expect(answer.status).toBeOneOf([400, 401, 404, 505]);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  it('does not take the public branch with an empty query', async () => {
    await using world = startWorld();
    const answer = await rawGet(world, `${CREATION}?`);
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body)).toEqual({ error: { message: 'You are not signed in.' } });
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    '/v1/music/public/..',
    '/v1/music/public/.',
    '/v1/music/public/%2e%2E',
    '/v1/music/public/../x',
    '/v1/music/public/abc/..',
  ])('has its dot segments resolved first, and is then no longer public: %s', async (path) => {
    await using world = startWorld();
    const answer = await rawGet(world, path);
    expect(answer.status).toBe(401);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(['/v1/music/public/abc#', '/v1/music/public/abc%', '/v1/music/public/a%2fb'])(
    'is nowhere when another server could read it differently: %s',
    async (path) => {
      await using world = startWorld();
      const answer = await rawGet(world, path);
      expect(answer.status).toBe(404);
      expect(world.upstream.calls).toEqual([]);
    },
  );
});
