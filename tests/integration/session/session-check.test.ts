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

async function expectState(response: Response, state: string): Promise<void> {
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toStartWith('application/json');
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(await response.text()).toBe(state);
}

// What a session check relays: relay/relayed-responses.test.ts; how it fails: relay/every-route.test.ts.
describe('GET /api/auth/session', () => {
  it.each([
    ['no cookie', undefined, undefined],
    ['only other cookies', 'theme=dark; svc_music=x', undefined],
    ['a session cookie twice', `${SIGNED_IN}; ${SIGNED_IN}`, 'sessionCookieTwice'],
  ])('says that nobody is signed in to a request with %s', async (_, cookie, reason) => {
    await using world = startWorld();
    const response = await checkSession(world, cookie);
    await expectState(response, '{"authenticated":false}');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
    const line = await world.line({ route: '/api/auth/session' });
    expect(line).toMatchObject({ level: 'info', status: 200 });
    expect(line['reason']).toBe(reason);
  });

  it.each([
    [SIGNED_IN, 0, [ME]],
    [REFRESH_ONLY, 2, [REFRESH, ME]],
  ])(
    'says that the user is signed in when the upstream knows no profile: %s',
    async (cookie, stored, calls) => {
      await using world = startWorld();
      world.upstream.on(ME, reply(404, { message: 'no profile' })).on(REFRESH, reply(200, pair(2)));
      const response = await checkSession(world, cookie);
      await expectState(response, '{"authenticated":true}');
      expect(response.headers.getSetCookie()).toHaveLength(stored);
      expect(world.upstream.calls).toEqual(calls);
    },
  );

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
