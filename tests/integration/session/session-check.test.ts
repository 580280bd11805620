import { describe, expect, it } from 'bun:test';
import {
  accept,
  checkSession,
  expectRefused,
  ME,
  pair,
  REFRESH,
  reply,
} from '../../support/session-calls.ts';
import { REFRESH_ONLY, SIGNED_IN, startWorld } from '../../support/world.ts';

// What a session check relays: relay/relayed-responses.test.ts; how it fails: relay/every-route.test.ts.
describe('GET /api/auth/session without a session', () => {
  const OTHERS = 'svc_music=x; SVC_MUSIC_ACCESS=access-1; xsvc_music_refresh=refresh-1';

  it.each([
    ['no cookie', undefined, undefined],
    ['only other cookies', `theme=dark; ${OTHERS}`, undefined],
    ['empty session cookies', 'svc_music_access=; svc_music_refresh=', undefined],
    ['values that no token has', 'svc_music_access=a%20b; svc_music_refresh=r%0d%0ax:%20y', undefined],
    ['a session cookie twice', `${SIGNED_IN}; ${SIGNED_IN}`, 'sessionCookieTwice'],
  ])('says that nobody is signed in to a request with %s', async (_, cookie, reason) => {
    await using world = startWorld();
    const response = await checkSession(world, cookie);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.text()).toBe('{"authenticated":false}');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
    const line = await world.line({ route: '/api/auth/session' });
    expect(line).toMatchObject({ level: 'info', status: 200 });
    expect(line['reason']).toBe(reason);
  });
});

describe('GET /api/auth/session', () => {
  it('says that the user is signed in when the upstream knows no profile, after a refresh too', async () => {
    await using world = startWorld();
    world.upstream.on(ME, reply(404, { message: 'no profile' })).on(REFRESH, reply(200, pair(2)));
    for (const [cookie, stored, calls] of [
      [SIGNED_IN, 0, [ME]],
      [REFRESH_ONLY, 2, [ME, REFRESH, ME]],
    ] as const) {
      const response = await checkSession(world, cookie);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toStartWith('application/json');
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(await response.text()).toBe('{"authenticated":true}');
      expect(response.headers.getSetCookie()).toHaveLength(stored);
      expect(world.upstream.calls).toEqual([...calls]);
    }
  });

  it('responds 502 and logs it when a new token is too large for a cookie', async () => {
    await using world = startWorld();
    world.upstream.on(ME, accept('access-2'));
    world.upstream.on(REFRESH, reply(200, { ...pair(2), refresh_token: 'r'.repeat(4096) }));
    const response = await checkSession(world, SIGNED_IN);
    await expectRefused(response, 502, 'tokensTooLarge');
    // The header says that a refresh was made, and the browser has nothing of it.
    expect(response.headers.get('server-timing')).toBeNull();
    expect(world.log).toHaveLength(1);
    expect(world.log.join()).not.toContain('rrrr');
  });
});
