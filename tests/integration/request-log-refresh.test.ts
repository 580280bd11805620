import { describe, expect, it } from 'bun:test';
import { REFRESH_ONLY, SIGNED_IN, startWorld, type World } from '../support/world.ts';

const PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };

describe('the outcome of a refresh', () => {
  const refreshing = (environment = {}) => {
    const world = startWorld(environment);
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === 'Bearer access-2'
        ? Response.json({})
        : new Response('', { status: 401 }),
    );
    return world;
  };
  const check = (world: World) => world.request('/api/auth/session', { cookie: SIGNED_IN });

  it('is renewed, and replayed for who comes later with the spent token', async () => {
    await using world = refreshing();
    world.upstream.on('POST /v1/auth/refresh', () => Response.json(PAIR));
    await check(world);
    await check(world);
    expect(world.lines.map(({ refresh }) => refresh)).toEqual(['renewed', 'replayed']);
    expect(world.lines[0]?.['upstream']).toMatchObject([
      { call: 'me', outcome: 401 },
      { call: 'refresh', outcome: 200 },
      { call: 'me', outcome: 200 },
    ]);
  });

  it('is shared by those who waited for the same one', async () => {
    await using world = refreshing();
    const answer = Promise.withResolvers<Response>();
    world.upstream.on('POST /v1/auth/refresh', () => answer.promise);
    const checks = [check(world), check(world), check(world)];
    await world.upstream.arrived('GET /v1/me', 3);
    await world.upstream.arrived('POST /v1/auth/refresh');
    answer.resolve(Response.json(PAIR));
    await Promise.all(checks);
    expect(world.lines.map(({ refresh }) => refresh).toSorted()).toEqual(['renewed', 'shared', 'shared']);
  });

  it('is rejected', async () => {
    await using world = refreshing();
    world.upstream.on('POST /v1/auth/refresh', () => new Response('', { status: 400 }));
    await check(world);
    expect(world.lines[0]).toMatchObject({ level: 'info', refresh: 'rejected', reason: 'sessionEnded' });
  });

  it('is unreachable', async () => {
    await using world = refreshing({ TIMEOUT_SIGN_IN_MS: '50' });
    world.upstream.on('POST /v1/auth/refresh', () => new Promise(() => {}));
    await check(world);
    expect(world.lines[0]).toMatchObject({
      status: 401,
      refresh: 'unreachable',
      upstream: [{ outcome: 401 }, { call: 'refresh', outcome: 'http_response_timeout' }],
    });
  });

  it('is unreachable for who has no access token either, and the cause is the innermost error', async () => {
    await using world = startWorld({ UPSTREAM_URL: 'http://127.0.0.1:9' });
    await world.request('/api/auth/session', { cookie: REFRESH_ONLY });
    expect(world.lines).toMatchObject([
      { level: 'warn', status: 502, refresh: 'unreachable', cause: 'TypeError ECONNREFUSED' },
    ]);
  });
});
