import { describe, expect, it } from 'bun:test';
import {
  ACCESS_ONLY,
  envelopeMessage,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  storedTokens,
  type World,
} from '../support/world.ts';

const RENEWED = { access_token: 'access-2', refresh_token: 'refresh-2', expires_in: 60 };
const UNAUTHORIZED = { status: 401 };
const CALLS = ['GET /v1/me', 'GET /v1/models', 'POST /v1/music', 'GET /v1/music/creations', 'PATCH /v1/me'];

/** An upstream that takes the second access token alone, and times its answers itself. */
function expire(world: World, answer: () => Response = () => Response.json({})): void {
  for (const call of CALLS) {
    world.upstream.on(call, ({ headers }) => {
      const isGood = headers.get('authorization') === 'Bearer access-2';
      const response = isGood ? answer() : new Response('', UNAUTHORIZED);
      response.headers.set('server-timing', 'db;dur=12, refresh');
      return response;
    });
  }
  world.upstream.on('POST /v1/auth/refresh', () => Response.json(RENEWED));
}

/** One request to each route that needs a session. */
function requests(world: World, cookie: string): Promise<Response>[] {
  return [
    world.request('/api/auth/session', { cookie }),
    world.request('/api/music/models', { cookie }),
    world.request('/api/music/generate', {
      cookie,
      json: { model: 'm', prompt: 'p', music_length_ms: 3000 },
    }),
    world.request('/api/upstream/v1/music/creations', { cookie }),
    world.request('/api/upstream/v1/me', { cookie, method: 'PATCH', body: '{}' }),
  ];
}

const timing = (response: Response) => response.headers.get('server-timing');

describe('Server-Timing', () => {
  it('says refresh on every answer that shares one, and a script may read it', async () => {
    await using world = startWorld();
    expire(world);
    const answers = await Promise.all(requests(world, SIGNED_IN));
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      expect(timing(answer)).toBe('refresh');
      expect(storedTokens(answer)).not.toEqual({});
      expect(answer.headers.get('access-control-expose-headers')).toContain('Server-Timing');
    }
    expect(world.upstream.calls.filter((call) => call === 'POST /v1/auth/refresh')).toHaveLength(1);
  });

  it('says refresh when there was no access token', async () => {
    await using world = startWorld();
    expire(world);
    expect(timing(await world.request('/api/auth/session', { cookie: REFRESH_ONLY }))).toBe('refresh');
  });

  it('says refresh on an answer for which a refresh was replayed', async () => {
    await using world = startWorld();
    expire(world);
    await world.request('/api/auth/session', { cookie: SIGNED_IN });
    const late = await world.request('/api/music/models', { cookie: SIGNED_IN });
    expect(timing(late)).toBe('refresh');
    expect(storedTokens(late)['svc_music_refresh']).toBe('refresh-2');
    expect(world.upstream.calls.filter((call) => call === 'POST /v1/auth/refresh')).toHaveLength(1);
  });

  it.each([
    ['403', () => Response.json({ message: 'no' }, { status: 403 })],
    ['401 again', () => Response.json({ message: 'no' }, { status: 401 })],
  ])('says refresh when the repeated call is answered with %s', async (_, answer) => {
    await using world = startWorld();
    expire(world, answer);
    for (const response of await Promise.all(requests(world, SIGNED_IN))) {
      expect(response.ok).toBe(false);
      expect(timing(response)).toBe('refresh');
    }
  });

  it('is not there when nothing was refreshed, whatever the upstream sends', async () => {
    await using world = startWorld();
    expire(world);
    const good = 'svc_music_access=access-2; svc_music_refresh=refresh-2';
    for (const answer of await Promise.all(requests(world, good))) {
      expect(answer.status).toBe(200);
      expect(timing(answer)).toBeNull();
    }
    world.upstream.on('GET /v1/music/public/1', () =>
      Response.json({}, { headers: { 'server-timing': 'refresh' } }),
    );
    expect(timing(await world.request('/api/upstream/v1/music/public/1', { cookie: good }))).toBeNull();
    expect(timing(await world.request('/api/auth/session'))).toBeNull();
    expect(timing(await world.request('/api/health'))).toBeNull();
  });

  it('is not there when there is nothing to refresh with', async () => {
    await using world = startWorld();
    expire(world);
    for (const answer of await Promise.all(requests(world, ACCESS_ONLY))) {
      expect(answer.status).toBe(401);
      expect(timing(answer)).toBeNull();
    }
  });

  it.each([
    ['refused', () => new Response('', UNAUTHORIZED)],
    ['not answered', () => new Response('late')],
  ])('is not there when the refresh is %s', async (kind, answer) => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '50' });
    expire(world);
    const never = Promise.withResolvers<Response>();
    world.upstream.on('POST /v1/auth/refresh', () => (kind === 'refused' ? answer() : never.promise));
    for (const response of await Promise.all(requests(world, SIGNED_IN))) {
      expect(response.status).toBe(401);
      expect(timing(response)).toBeNull();
    }
    never.resolve(answer());
  });

  it('is not there when the new tokens fit into no cookie', async () => {
    await using world = startWorld();
    expire(world);
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ ...RENEWED, access_token: 'a'.repeat(5000) }),
    );
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    await envelopeMessage(response, 502);
    expect(timing(response)).toBeNull();
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  it('is not there when the session was signed out meanwhile', async () => {
    await using world = startWorld();
    expire(world);
    const held = Promise.withResolvers<Response>();
    world.upstream.on('GET /v1/models', ({ headers }) =>
      headers.get('authorization') === 'Bearer access-2' ? held.promise : new Response('', UNAUTHORIZED),
    );
    world.upstream.on('POST /v1/auth/logout', () => new Response());
    const models = world.request('/api/music/models', { cookie: SIGNED_IN });
    await world.upstream.arrived('GET /v1/models', 2);
    await world.request('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    held.resolve(Response.json([]));
    const answer = await models;
    expect(answer.status).toBe(200);
    expect(timing(answer)).toBeNull();
    expect(answer.headers.getSetCookie()).toEqual([]);
  });
});
