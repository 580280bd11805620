import { describe, expect, it } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { startWorld, type World } from '../../support/world.ts';
import { clientIn, fetchOf, openPage, openSignedIn, recorded, rejection } from './page.ts';

const ORDER = { model: 'm', prompt: 'p', music_length_ms: 3000 };

/** From now on only the second access token is good, and a refresh gives it. */
function expire(world: World, answers: Record<string, () => Response>): void {
  for (const [call, answer] of Object.entries(answers)) {
    world.upstream.on(call, ({ headers }) =>
      headers.get('authorization') === 'Bearer access-2' ? answer() : new Response('', { status: 401 }),
    );
  }
  world.upstream.on('POST /v1/auth/refresh', () =>
    Response.json({ access_token: 'access-2', refresh_token: 'refresh-2', expires_in: 60 }),
  );
}

describe('the session', () => {
  it('is none without cookies, and the upstream is not asked', async () => {
    await using world = startWorld();
    expect(await clientIn(openPage(), world).session()).toStrictEqual({ authenticated: false });
    expect(world.upstream.received).toEqual([]);
  });

  it.each([
    ['in data', { data: { name: 'Ada' } }, { name: 'Ada' }],
    ['bare', { name: 'Ada' }, { name: 'Ada' }],
    ['with a field of that name', { authenticated: true, name: 'Ada' }, { authenticated: true, name: 'Ada' }],
    ['that is a list', ['Ada'], ['Ada']],
    ['that is null', null, null],
  ])('has the profile of its user: %s', async (_, body, profile) => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    world.upstream.on('GET /v1/me', () => Response.json(body));
    expect(await client.session()).toStrictEqual({ authenticated: true, profile });
  });

  it.each([
    ['answers 404', () => new Response('none', { status: 404 })],
    ['answers with nothing', () => new Response(null, { status: 204 })],
  ])('has no profile when the upstream %s', async (_, answer) => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    world.upstream.on('GET /v1/me', answer);
    expect(await client.session()).toStrictEqual({ authenticated: true });
  });

  it('is none once the upstream has refused a refresh, for good', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    world.upstream.on('GET /v1/me', () => new Response('', { status: 401 }));
    world.upstream.on('POST /v1/auth/refresh', () => new Response('', { status: 401 }));
    expect(await client.session()).toStrictEqual({ authenticated: false });
    const asked = world.upstream.calls.length;
    expect(await client.session()).toStrictEqual({ authenticated: false });
    expect(world.upstream.calls).toHaveLength(asked);
  });

  it.each([
    ['500', () => Response.json({ message: 'down' }, { status: 500 }), 500, 'down'],
    ['403', () => Response.json({ message: 'blocked' }, { status: 403 }), 403, 'blocked'],
    ['what is not JSON', () => new Response('<html>'), 200, 'The response is not JSON.'],
  ])('is not known when the upstream answers %s', async (_, answer, status, message) => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    world.upstream.on('GET /v1/me', answer);
    const error = await rejection(client.session());
    expect(error).toMatchObject({ name: 'GatewayRequestError', status, message, retryIsSafe: true });
  });

  it('is not known when the upstream cannot be reached', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    await world.upstream.stop();
    const error = await rejection(client.session());
    expect(error).toMatchObject({ name: 'GatewayRequestError', status: 502, retryIsSafe: true });
  });

  it('is not known when it could not be renewed just now, and goes on when it can be', async () => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '50' });
    const { client } = await openSignedIn(world);
    const never = Promise.withResolvers<Response>();
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === 'Bearer access-2'
        ? Response.json({ name: 'Ada' })
        : new Response('', { status: 401 }),
    );
    world.upstream.on('POST /v1/auth/refresh', () => never.promise);
    expect(await rejection(client.session())).toMatchObject({ status: 401, sessionHasEnded: false });
    never.resolve(new Response());
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
    );
    expect(await client.session()).toStrictEqual({ authenticated: true, profile: { name: 'Ada' } });
  });

  it('is asked for past every cache, with the cookies', async () => {
    await using world = startWorld();
    const { fetch, sent } = recorded(fetchOf(openPage()));
    await clientIn(openPage(), world, { fetch }).session();
    expect(sent).toMatchObject([{ init: { cache: 'no-store', credentials: 'include' } }]);
  });

  it('ends with signing out, at the upstream too', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    world.upstream.on('POST /v1/auth/logout', () => new Response());
    expect(await client.signOut()).toBeUndefined();
    expect(world.upstream.last('POST /v1/auth/logout').body).toBe('{"refresh_token":"refresh-1"}');
    expect(await client.session()).toStrictEqual({ authenticated: false });
  });
});

describe('onRefresh', () => {
  it('is called once for each answer for which the session was renewed, and for no other', async () => {
    await using world = startWorld();
    let refreshes = 0;
    const { client } = await openSignedIn(world, { onRefresh: () => refreshes++ });
    world.upstream.on('GET /v1/me', () => Response.json({}));
    await client.session();
    expect(refreshes).toBe(0);
    expire(world, { 'GET /v1/me': () => Response.json({}) });
    await client.session();
    expect(refreshes).toBe(1);
    await client.session();
    expect(refreshes).toBe(1);
  });

  it('is called for each of several calls that share a refresh', async () => {
    await using world = startWorld();
    let refreshes = 0;
    const { client } = await openSignedIn(world, { onRefresh: () => refreshes++ });
    expire(world, {
      'GET /v1/me': () => Response.json({}),
      'GET /v1/models': () => Response.json([]),
      'GET /v1/music/creations': () => Response.json([]),
    });
    await Promise.all([client.session(), client.models(), client.creations()]);
    expect(refreshes).toBe(3);
    expect(world.upstream.calls.filter((call) => call === 'POST /v1/auth/refresh')).toHaveLength(1);
  });

  it('is called for an answer that is an error, before it is thrown', async () => {
    await using world = startWorld();
    const seen: string[] = [];
    const { client } = await openSignedIn(world, { onRefresh: () => seen.push('refresh') });
    expire(world, { 'POST /v1/music': () => Response.json({ message: 'no credits' }, { status: 402 }) });
    await rejection(client.generate(ORDER)).then(() => seen.push('error'));
    expect(seen).toEqual(['refresh', 'error']);
  });

  it.each([
    ['refresh', 1],
    ['cdn-cache;desc=HIT, refresh', 1],
    ['refresh;dur=3, cdn;dur=1', 1],
    ['refresh , refresh', 1],
    ['refreshed', 0],
    ['refresh-queue;dur=3', 0],
    ['pre-refresh', 0],
    ['db;desc=refresh', 0],
    ['', 0],
  ])('goes by the names in Server-Timing: %p', async (serverTiming, times) => {
    let refreshes = 0;
    const client = createGatewayClient({
      baseUrl: 'http://gateway.test',
      onRefresh: () => refreshes++,
      fetch: async () => Response.json([], { headers: { 'server-timing': serverTiming } }),
    });
    await client.models();
    expect(refreshes).toBe(times);
  });
});
