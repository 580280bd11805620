import { afterEach, describe, expect, it, setSystemTime } from 'bun:test';
import net from 'node:net';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../support/metrics.ts';
import {
  envelopeMessage,
  expectCleared,
  ORIGIN,
  SIGNED_IN,
  startWorld,
  storedTokens,
  type World,
} from '../support/world.ts';

const EXPIRES_IN = 100;

/** An upstream that rotates: `refresh-1` gives `access-2` and `refresh-2`, and so on; only live access tokens count. */
function rotate(world: World, live: Set<string> = new Set()): Set<string> {
  const spent = new Set<string>();
  world.upstream.on('GET /v1/me', ({ headers }) => {
    const token = headers.get('authorization')?.slice('Bearer '.length) ?? '';
    return live.has(token) ? Response.json({ token }) : new Response('', { status: 401 });
  });
  world.upstream.on('POST /v1/auth/refresh', ({ body }) => {
    const token: string = JSON.parse(body).refresh_token;
    if (spent.has(token)) return Response.json({ error: { message: 'reused' } }, { status: 401 });
    spent.add(token);
    const next = Number(token.split('-')[1]) + 1;
    live.clear();
    live.add(`access-${next}`);
    return Response.json({
      access_token: `access-${next}`,
      refresh_token: `refresh-${next}`,
      expires_in: EXPIRES_IN,
    });
  });
  return live;
}

function session(world: World, cookie: string): Promise<Response> {
  return world.request('/api/auth/session', { cookie });
}

function cookies(generation: number): string {
  return `svc_music_access=access-${generation}; svc_music_refresh=refresh-${generation}`;
}

function refreshes(world: World): number {
  return world.upstream.calls.filter((call) => call === 'POST /v1/auth/refresh').length;
}

/** The spent tokens that were sent to the upstream, by the reason. */
async function reuses({ registry }: Metrics) {
  const found = await samplesOf(registry);
  const count = (why: string) => found.get(`refresh_token_reuses_total{why="${why}"}`);
  return { presented: count('presented'), late: count('late') };
}

function later(seconds: number): void {
  setSystemTime(Date.now() + seconds * 1000);
}
afterEach(() => void setSystemTime());

describe('a request with a spent refresh token', () => {
  it('gets the pair that it was exchanged for, without another refresh', async () => {
    await using world = startWorld();
    rotate(world);
    await session(world, SIGNED_IN);
    const late = await session(world, SIGNED_IN);
    expect(late.status).toBe(200);
    expect(storedTokens(late)).toEqual({ svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' });
    expect(refreshes(world)).toBe(1);
  });

  it('gets an access cookie with what is left of its life', async () => {
    await using world = startWorld();
    rotate(world);
    await session(world, SIGNED_IN);
    later(40);
    const late = await session(world, SIGNED_IN);
    const access = late.headers.getSetCookie().find((header) => header.startsWith('svc_music_access'));
    const maxAge = Number(/Max-Age=(\d+)/.exec(access ?? '')?.[1]);
    expect(maxAge).toBeGreaterThan(EXPIRES_IN - 50);
    expect(maxAge).toBeLessThanOrEqual(EXPIRES_IN - 40);
  });

  it('gets its pair for 10 s after the successor was presented, and then goes to the upstream', async () => {
    await using world = startWorld();
    rotate(world);
    await session(world, cookies(1));
    await session(world, cookies(2));
    later(9);
    expect(storedTokens(await session(world, cookies(1)))['svc_music_refresh']).toBe('refresh-2');
    expect(refreshes(world)).toBe(1);
    later(2);
    expectCleared(await session(world, cookies(1)));
    expect(world.upstream.last('POST /v1/auth/refresh').body).toBe('{"refresh_token":"refresh-1"}');
    expect(refreshes(world)).toBe(2);
  });

  it('goes to the upstream at once when its successor was presented and renewed in its turn', async () => {
    const metrics = new Metrics();
    await using world = startWorld({}, metrics);
    const live = rotate(world);
    await session(world, cookies(1));
    live.clear();
    await session(world, cookies(2));
    // Times are in whole milliseconds.
    later(0.002);
    const late = await session(world, cookies(1));
    expectCleared(late);
    expect(world.upstream.last('POST /v1/auth/refresh').body).toBe('{"refresh_token":"refresh-1"}');
    const line = await world.line({ refreshTokenReused: 'presented' });
    expect(line).toMatchObject({ level: 'warn', refresh: 'rejected', status: 401 });
    expect(world.lines.filter((each) => 'refreshTokenReused' in each)).toHaveLength(1);
    expect(await reuses(metrics)).toEqual({ presented: 1, late: 0 });
  });

  it('gets what the upstream gives for it then, unless its session is signed out meanwhile', async () => {
    await using world = startWorld();
    rotate(world);
    await session(world, cookies(1));
    await session(world, cookies(2));
    later(11);
    // An upstream that does not detect the reuse.
    const renewed = Promise.withResolvers<void>();
    world.upstream.on('POST /v1/auth/refresh', async () => {
      await renewed.promise;
      return Response.json({ access_token: 'access-9', refresh_token: 'refresh-9' });
    });
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === 'Bearer access-9'
        ? Response.json({})
        : new Response('', { status: 401 }),
    );
    world.upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
    const reusing = session(world, cookies(1));
    await world.upstream.arrived('POST /v1/auth/refresh', 2);
    await world.request('/api/auth/logout', { method: 'POST', cookie: cookies(2) });
    renewed.resolve();
    await envelopeMessage(await reusing, 401);
    expect(world.upstream.last('POST /v1/auth/logout').body).toBe('{"refresh_token":"refresh-9"}');
  });

  it('gets the newest pair when it arrived before the refresh, however late its first response is', async () => {
    await using world = startWorld();
    const live = rotate(world);
    const release = Promise.withResolvers<void>();
    world.upstream.on('GET /v1/models', async ({ headers }) => {
      if (headers.get('authorization') !== 'Bearer access-1') return Response.json({});
      await release.promise;
      return new Response('', { status: 401 });
    });
    const early = world.request('/api/music/models', { cookie: cookies(1) });
    await world.upstream.arrived('GET /v1/models');
    later(1);
    await session(world, cookies(1));
    live.clear();
    await session(world, cookies(2));
    later(90);
    release.resolve();
    const response = await early;
    expect(response.status).toBe(200);
    expect(storedTokens(response)['svc_music_refresh']).toBe('refresh-3');
    expect(refreshes(world)).toBe(2);
  });

  it('refreshes the successor once when its access token is over, for all who come at once', async () => {
    await using world = startWorld({ REFRESH_REPLAY_SECONDS: '600' });
    const live = rotate(world);
    await session(world, cookies(1));
    live.clear();
    later(EXPIRES_IN + 1);
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => session(world, cookies((i % 2) + 1))),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    for (const answer of answers) expect(storedTokens(answer)['svc_music_refresh']).toBe('refresh-3');
    expect(refreshes(world)).toBe(2);
  });

  it('is refused by the upstream once the replay window is over', async () => {
    const metrics = new Metrics();
    await using world = startWorld({ REFRESH_REPLAY_SECONDS: '60' }, metrics);
    rotate(world);
    await session(world, SIGNED_IN);
    later(61);
    const late = await session(world, SIGNED_IN);
    expectCleared(late);
    expect(refreshes(world)).toBe(2);
    expect(await world.line({ refreshTokenReused: 'late' })).toMatchObject({ level: 'warn', status: 401 });
    expect(await reuses(metrics)).toEqual({ presented: 0, late: 1 });
  });

  it('is refused at once when the replay window is off', async () => {
    await using world = startWorld({ REFRESH_REPLAY_SECONDS: '0' });
    rotate(world);
    await session(world, SIGNED_IN);
    later(0.002);
    expectCleared(await session(world, SIGNED_IN));
    expect(refreshes(world)).toBe(2);
  });

  it('is signed in although the answer of the refreshing request never reached the client', async () => {
    await using world = startWorld();
    rotate(world);
    const held = Promise.withResolvers<void>();
    const refused = { status: 401 };
    world.upstream.on('GET /v1/models', async ({ headers }) => {
      if (headers.get('authorization') === 'Bearer access-1') return new Response('', refused);
      await held.promise;
      return Response.json({});
    });
    const closed = Promise.withResolvers<void>();
    const socket = net.connect(world.port, '127.0.0.1', () => {
      socket.write(
        `GET /api/music/models HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\n\r\n`,
      );
    });
    socket.on('close', () => closed.resolve());
    await world.upstream.arrived('GET /v1/models', 2);
    socket.destroy();
    await closed.promise;
    held.resolve();
    const next = await session(world, SIGNED_IN);
    expect(next.status).toBe(200);
    expect(storedTokens(next)['svc_music_refresh']).toBe('refresh-2');
    expect(refreshes(world)).toBe(1);
  });
});

describe('an answer that took long after its refresh', () => {
  /** A models call that has refreshed to pair 2, and whose second call is held until the test releases it. */
  async function startLong(world: World) {
    const live = rotate(world);
    const release = Promise.withResolvers<void>();
    world.upstream.on('GET /v1/models', async ({ headers }) => {
      if (headers.get('authorization') === 'Bearer access-1') return new Response('', { status: 401 });
      await release.promise;
      return Response.json({});
    });
    const long = world.request('/api/music/models', { cookie: cookies(1) });
    await world.upstream.arrived('GET /v1/models', 2);
    return { live, release, long };
  }

  it('brings the newest pair of the chain, not the one it was made with', async () => {
    await using world = startWorld();
    const { live, release, long } = await startLong(world);
    live.clear();
    await session(world, cookies(2));
    later(120);
    release.resolve();
    const answer = await long;
    expect(answer.status).toBe(200);
    expect(storedTokens(answer)).toEqual({ svc_music_access: 'access-3', svc_music_refresh: 'refresh-3' });
  });

  it('brings no pair when the session was signed out meanwhile', async () => {
    await using world = startWorld();
    const { release, long } = await startLong(world);
    world.upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
    await world.request('/api/auth/logout', { method: 'POST', cookie: cookies(2) });
    release.resolve();
    expect((await long).headers.getSetCookie()).toEqual([]);
  });
});

describe('a sign-in with the cookies of another session', () => {
  it.each([
    ['a new pair', () => Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' })],
    ['a refusal', () => new Response('', { status: 401 })],
  ])('ends that session here: its late response, to %s, sets no cookies', async (_, late) => {
    await using world = startWorld();
    rotate(world);
    const refresh = Promise.withResolvers<Response>();
    world.upstream.on('POST /v1/auth/refresh', () => refresh.promise);
    world.upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', () =>
      Response.json({ access_token: 'other-access', refresh_token: 'other-refresh' }),
    );
    const former = session(world, cookies(1));
    await world.upstream.arrived('POST /v1/auth/refresh');
    const grant = { code: 'c', code_verifier: 'v'.repeat(43) };
    const signIn = await world.request('/api/auth/idp', { json: grant, cookie: cookies(1) });
    expect(storedTokens(signIn)['svc_music_refresh']).toBe('other-refresh');
    // The session ends in the gateway only: no call tells the upstream.
    expect(world.upstream.calls).not.toContain('POST /v1/auth/logout');
    refresh.resolve(late());
    const response = await former;
    await envelopeMessage(response, 401);
    expect(response.headers.getSetCookie()).toEqual([]);
    // The client may have sent it before it had the new cookies, which it must not clear.
    const crossing = await session(world, cookies(1));
    await envelopeMessage(crossing, 401);
    expect(crossing.headers.getSetCookie()).toEqual([]);
    later(11);
    // A later request with the former cookies gets 401.
    expectCleared(await session(world, cookies(1)));
    expect(refreshes(world)).toBe(1);
  });

  it('leaves that session as it is when it fails', async () => {
    await using world = startWorld();
    rotate(world);
    world.upstream.on('POST /oauth/token', () => new Response('', { status: 400 }));
    const grant = { code: 'c', code_verifier: 'v'.repeat(43) };
    await world.request('/api/auth/idp', { json: grant, cookie: cookies(1) });
    expect((await session(world, cookies(1))).status).toBe(200);
  });
});

describe('signing in again with the same refresh token', () => {
  it('is not undone by the sign-out before it', async () => {
    await using world = startWorld();
    rotate(world);
    world.upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', () =>
      Response.json({ access_token: 'access-1', refresh_token: 'refresh-1' }),
    );
    await world.request('/api/auth/logout', { method: 'POST', cookie: cookies(1) });
    await world.request('/api/auth/idp', { json: { code: 'c', code_verifier: 'v'.repeat(43) } });
    expect((await session(world, cookies(1))).status).toBe(200);
  });
});

describe('signing in again with the same refresh token while its refresh is under way', () => {
  it('is not undone by the sign-out between them', async () => {
    await using world = startWorld();
    rotate(world);
    const refresh = Promise.withResolvers<Response>();
    world.upstream.on('POST /v1/auth/refresh', () => refresh.promise);
    world.upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', () =>
      Response.json({ access_token: 'access-1', refresh_token: 'refresh-1' }),
    );
    const refreshing = session(world, cookies(1));
    await world.upstream.arrived('POST /v1/auth/refresh');
    await world.request('/api/auth/logout', { method: 'POST', cookie: cookies(1) });
    await world.request('/api/auth/idp', { json: { code: 'c', code_verifier: 'v'.repeat(43) } });
    refresh.resolve(Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }));
    expect(storedTokens(await refreshing)['svc_music_refresh']).toBe('refresh-2');
    expect(world.upstream.calls.filter((call) => call === 'POST /v1/auth/logout')).toHaveLength(1);
  });
});

describe('an upstream that does not rotate refresh tokens', () => {
  it('is asked again each time the access token is over', async () => {
    await using world = startWorld();
    let generation = 1;
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === `Bearer access-${generation}`
        ? Response.json({})
        : new Response('', { status: 401 }),
    );
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: `access-${++generation}`, refresh_token: 'refresh-1', expires_in: 1000 }),
    );
    await session(world, 'svc_music_access=old; svc_music_refresh=refresh-1');
    generation++;
    const again = await session(world, 'svc_music_access=access-2; svc_music_refresh=refresh-1');
    expect(again.status).toBe(200);
    expect(storedTokens(again)['svc_music_access']).toBe('access-4');
  });
});

describe('sign-out', () => {
  it('discards a refresh that is under way, and signs its pair out upstream', async () => {
    await using world = startWorld();
    rotate(world);
    const refresh = Promise.withResolvers<Response>();
    world.upstream.on('POST /v1/auth/refresh', () => refresh.promise);
    world.upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
    const refreshing = [session(world, SIGNED_IN), session(world, SIGNED_IN)];
    await world.upstream.arrived('POST /v1/auth/refresh');
    const signOut = await world.request('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    expectCleared(signOut);
    refresh.resolve(Response.json({ access_token: 'late-access', refresh_token: 'late-refresh' }));
    for (const response of await Promise.all(refreshing)) {
      expect(await envelopeMessage(response, 401)).toContain('session has ended');
      // The sign-out has cleared them, and a sign-in may have set others since.
      expect(response.headers.getSetCookie()).toEqual([]);
    }
    const logout = world.upstream.last('POST /v1/auth/logout');
    expect(logout.headers.get('authorization')).toBe('Bearer late-access');
    expect(logout.body).toBe('{"refresh_token":"late-refresh"}');

    const afterwards = await session(world, SIGNED_IN);
    await envelopeMessage(afterwards, 401);
    expectCleared(afterwards);
    expect(refreshes(world)).toBe(1);
  });

  it('ends the replay of every token of the chain, whichever of them it comes with', async () => {
    for (const presented of [1, 2, 3]) {
      await using world = startWorld();
      const live = rotate(world);
      await session(world, cookies(1));
      live.clear();
      await session(world, cookies(2));
      world.upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
      await world.request('/api/auth/logout', { method: 'POST', cookie: cookies(presented) });
      const signedOut = world.upstream.received
        .filter(({ target }) => target === '/v1/auth/logout')
        .map(({ body }) => JSON.parse(body).refresh_token);
      expect(signedOut).toContain('refresh-3');
      live.clear();
      for (const token of [presented, 3]) {
        const answer = await session(world, cookies(token));
        await envelopeMessage(answer, 401);
        expectCleared(answer);
      }
      const ancestor = await session(world, cookies(1));
      await envelopeMessage(ancestor, 401);
      expect(refreshes(world)).toBe(2);
    }
  });
});
