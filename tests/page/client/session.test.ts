import { describe, expect, it } from 'bun:test';
import { startWorld, type World } from '../../support/world.ts';
import {
  clientIn,
  fetchOf,
  openPage,
  openSignedIn,
  recorded,
  rejection,
  respondWith,
  shareSignedIn,
  signIn,
} from './page.ts';

const ME = 'GET /v1/me';
const REFRESH = 'POST /v1/auth/refresh';
const SIGNED_OUT = { authenticated: false };

/** From now on only the second access token is good, and a refresh gives it. */
function expire({ upstream }: World, responses: Record<string, () => Response>): void {
  for (const [call, respond] of Object.entries(responses)) {
    upstream.on(call, ({ headers }) =>
      headers.get('authorization') === 'Bearer access-2' ? respond() : new Response('', { status: 401 }),
    );
  }
  upstream.on(REFRESH, () => Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }));
}

describe('the session', () => {
  const signedIn = shareSignedIn();

  it('is none without cookies, and the upstream is not asked', async () => {
    await using world = startWorld();
    const { fetch, sent } = recorded(fetchOf(openPage()));
    expect(await clientIn(openPage(), world, { fetch }).session()).toStrictEqual(SIGNED_OUT);
    expect(sent).toMatchObject([{ init: { cache: 'no-store', credentials: 'include' } }]);
    expect(world.upstream.received).toEqual([]);
  });

  it.each([
    ['in data', { data: { name: 'Ada' } }, { name: 'Ada' }],
    [
      'bare, with a field of that name',
      { authenticated: true, name: 'Ada' },
      { authenticated: true, name: 'Ada' },
    ],
    ['that is a list', ['Ada'], ['Ada']],
    ['that is null', null, null],
  ])('has the profile of its user: %s', async (_, body, profile) => {
    const { world, client } = signedIn();
    world.upstream.on(ME, () => Response.json(body));
    expect(await client.session()).toStrictEqual({ authenticated: true, profile });
    expect(world.upstream.last(ME).headers.get('authorization')).toBe('Bearer access-1');
  });

  it.each([404, 204])('has no profile when the upstream responds with %d', async (status) => {
    const { world, client } = signedIn();
    world.upstream.on(ME, () => new Response(null, { status }));
    expect(await client.session()).toStrictEqual({ authenticated: true });
  });

  it.each([
    [500, () => Response.json({ message: 'down' }, { status: 500 }), 'down'],
    [200, () => new Response('<html>'), 'The response is not JSON.'],
  ])('is unknown after a %d that is no profile', async (status, respond, message) => {
    const { world, client } = signedIn();
    world.upstream.on(ME, respond);
    const error = await rejection(client.session());
    expect(error).toMatchObject({ name: 'GatewayRequestError', status, message, retryIsSafe: true });
  });

  it('is unknown while it cannot be refreshed, and goes on when it can', async () => {
    await using opened = await openSignedIn({ TIMEOUT_SIGN_IN_MS: '1000' });
    const { world, client } = opened;
    const never = Promise.withResolvers<Response>();
    expire(world, { [ME]: () => Response.json({ name: 'Ada' }) });
    world.upstream.on(REFRESH, () => never.promise);
    expect(await rejection(client.session())).toMatchObject({ status: 401, sessionHasEnded: false });
    never.resolve(new Response());
    expire(world, {});
    expect(await client.session()).toStrictEqual({ authenticated: true, profile: { name: 'Ada' } });
  });

  it('ends with a sign-out, at the upstream too, and with a refused refresh', async () => {
    await using opened = await openSignedIn();
    const { world, page, client } = opened;
    world.upstream.on('POST /v1/auth/logout', () => new Response());
    expect(await client.signOut()).toBeUndefined();
    expect(world.upstream.last('POST /v1/auth/logout').body).toBe('{"refresh_token":"refresh-1"}');
    expect(await client.session()).toStrictEqual(SIGNED_OUT);

    await signIn(client);
    for (const call of [ME, REFRESH]) world.upstream.on(call, () => new Response('', { status: 401 }));
    expect(await client.session()).toStrictEqual(SIGNED_OUT);
    const asked = world.upstream.calls.length;
    expect(await clientIn(page, world).session()).toStrictEqual(SIGNED_OUT);
    expect(world.upstream.calls).toHaveLength(asked);
  });
});

describe('onRefresh', () => {
  it('is called for each response after a refresh, an error too, and for no other', async () => {
    const seen: string[] = [];
    await using opened = await openSignedIn({}, { onRefresh: () => seen.push('refresh') });
    const { world, client } = opened;
    world.upstream.on(ME, () => Response.json({}));
    await client.session();
    expect(seen).toEqual([]);
    const refused = () => Response.json({ message: 'no credits' }, { status: 402 });
    expire(world, { [ME]: () => Response.json({}), 'GET /v1/models': refused });
    await Promise.all([client.session(), rejection(client.models()).then(() => seen.push('error'))]);
    expect(seen.filter((each) => each === 'refresh')).toHaveLength(2);
    expect(seen.at(0)).toBe('refresh');
    expect(world.upstream.calls.filter((call) => call === REFRESH)).toHaveLength(1);
    await client.session();
    expect(seen).toHaveLength(3);
  });

  it.each([
    ['cdn-cache;desc=HIT, refresh', 1],
    ['refresh;dur=3, cdn;dur=1', 1],
    ['refresh , refresh', 1],
    ['refreshed', 0],
    ['pre-refresh', 0],
    ['db;desc=refresh', 0],
  ])('is called by the names in Server-Timing: %p, %d times', async (serverTiming, times) => {
    let refreshes = 0;
    const headers = { 'server-timing': serverTiming };
    await respondWith('[]', { headers }, { onRefresh: () => refreshes++ }).models();
    expect(refreshes).toBe(times);
  });
});
