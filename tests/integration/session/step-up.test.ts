import { describe, expect, it } from 'bun:test';
import { BUFFERED, GENERATE, proxied } from '../../support/routes.ts';
import { accept, pair, REFRESH, reply } from '../../support/session-calls.ts';
import { ACCESS_ONLY, ORIGIN, SIGNED_IN, startWorld, storedTokens } from '../../support/world.ts';

const STEP_UP = 'Bearer error="insufficient_user_authentication", acr_values="mfa", max_age="300"';
const BODY = JSON.stringify({ error: { message: 'Sign in with a second factor' } });

/** An upstream's 401 with this challenge. */
const refuse = (challenge: string) => () =>
  new Response(BODY, {
    status: 401,
    headers: { 'content-type': 'application/json', 'www-authenticate': challenge },
  });

/** Every kind of route that calls the upstream with the session. */
const ROUTES = [...BUFFERED, GENERATE, proxied('GET'), proxied('HEAD'), proxied('PATCH')].map(
  ({ name, path, calls, options }) => ({ name, path, options, call: calls.join() }),
);

describe.each(ROUTES)('$name', ({ path, call, options }) => {
  it.each([SIGNED_IN, ACCESS_ONLY])(
    'relays a 401 that no new token can repair, and refreshes nothing: %s',
    async (cookie) => {
      await using world = startWorld();
      world.upstream.on(
        call,
        refuse(`Basic realm="upstream", ${STEP_UP}, error_uri="http://upstream.test/"`),
      );
      const response = await world.request(path, { ...options, cookie });
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toBe(STEP_UP);
      expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
      expect(response.headers.get('access-control-expose-headers')).toContain('WWW-Authenticate');
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(await response.text()).toBe(options?.method === 'HEAD' ? '' : BODY);
      expect(world.upstream.calls).toEqual([call]);
    },
  );

  it.each(['Bearer', 'Bearer error="invalid_token"', 'Basic realm="upstream"', 'Bearer error="a', 'x='])(
    'refreshes after a 401 with %s',
    async (challenge) => {
      await using world = startWorld();
      const isRenewed = (headers: Headers) => headers.get('authorization') === 'Bearer access-2';
      world.upstream
        .on(call, ({ headers }) => (isRenewed(headers) ? Response.json({}) : refuse(challenge)()))
        .on(REFRESH, reply(200, pair(2)));
      const response = await world.request(path, { ...options, cookie: SIGNED_IN });
      expect(response.status).toBe(200);
      expect(response.headers.get('www-authenticate')).toBeNull();
      expect(storedTokens(response)).toEqual({
        svc_music_access: 'access-2',
        svc_music_refresh: 'refresh-2',
      });
      expect(world.upstream.calls).toEqual([call, REFRESH, call]);
    },
  );

  it('relays such a 401 after a refresh too, with the new cookies', async () => {
    await using world = startWorld();
    world.upstream.on(call, accept('access-2', refuse(STEP_UP))).on(REFRESH, reply(200, pair(2)));
    const response = await world.request(path, { ...options, cookie: SIGNED_IN });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe(STEP_UP);
    expect(storedTokens(response)).toEqual({ svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' });
    expect(world.upstream.calls).toEqual([call, REFRESH, call]);
  });

  it.each(['Bearer error="invalid_token"', 'Basic realm="upstream"', 'Negotiate'])(
    'never relays a challenge such as %s',
    async (challenge) => {
      await using world = startWorld();
      world.upstream.on(call, refuse(challenge));
      const response = await world.request(path, { ...options, cookie: ACCESS_ONLY });
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toBeNull();
      expect(world.upstream.calls).toEqual([call]);
    },
  );
});
