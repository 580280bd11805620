import { describe, expect, it } from 'bun:test';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { GENERATE, PROXIED_PATH, PUBLIC, TRACK } from '../../support/routes.ts';
import type { Received } from '../../support/scripted-upstream.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  storedTokens,
} from '../../support/world.ts';

const REFRESH = 'POST /v1/auth/refresh';
const NEW_PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };
const NEW_TOKENS = { svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' };
const KEY = { 'idempotency-key': 'key-1' };

function startRenewing() {
  const world = startWorld();
  world.upstream.on(REFRESH, () => Response.json(NEW_PAIR));
  return world;
}

/** Responds 401 to every access token but the renewed one. */
function onlyRenewed(respond: () => Response) {
  return ({ headers }: Received) =>
    headers.get('authorization') === 'Bearer access-2'
      ? respond()
      : Response.json({ message: 'expired' }, { status: 401, headers: { 'set-cookie': 'upstream=1' } });
}

// The rules of the refresh itself have tests of their own.
describe.each([
  { path: GENERATE.path, call: 'POST /v1/music', json: TRACK },
  { path: PROXIED_PATH, call: 'POST /v1/library', json: { is_public: true } },
])('$path with an expired access token', ({ path, call, json }) => {
  const options = { cookie: SIGNED_IN, headers: KEY, json };

  it('sends the same body and headers again, and sets the new cookies', async () => {
    await using own = startRenewing();
    own.upstream.on(
      call,
      onlyRenewed(() => new Response('done')),
    );
    const response = await own.request(path, options);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('done');
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(own.upstream.calls).toEqual([call, REFRESH, call]);
    const [first, refresh, second] = own.upstream.received;
    expect(refresh?.body).toBe('{"refresh_token":"refresh-1"}');
    expect(refresh?.headers.has('idempotency-key')).toBe(false);
    expect(second?.body).toBe(first?.body ?? '');
    expect(second?.headers.get('authorization')).toBe('Bearer access-2');
    for (const sent of [first, second]) {
      expect(Object.fromEntries(sent?.headers ?? [])).toMatchObject({
        ...KEY,
        'content-type': 'application/json',
      });
    }
  });

  it('relays a refusal after the refresh, with the new cookies', async () => {
    await using own = startRenewing();
    own.upstream.on(call, () => Response.json({ message: 'not yours' }, { status: 401 }));
    const response = await own.request(path, options);
    expect(response.status).toBe(401);
    expect(await response.text()).toContain('not yours');
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
    expect(own.upstream.calls).toEqual([call, REFRESH, call]);
  });

  it('relays the 401, and leaves the cookies, without a refresh cookie or when the refresh is late', async () => {
    await using own = startWorld({ TIMEOUT_SIGN_IN_MS: '50' });
    own.upstream
      .on(
        call,
        onlyRenewed(() => new Response()),
      )
      .on(REFRESH, () => new Promise(() => {}));
    for (const [cookie, calls] of [
      [ACCESS_ONLY, [call]],
      [SIGNED_IN, [call, REFRESH]],
    ] as const) {
      own.upstream.received.length = 0;
      const response = await own.request(path, { ...options, cookie });
      expect(response.status).toBe(401);
      expect(await response.text()).toContain('expired');
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(own.upstream.calls).toEqual([...calls]);
    }
  });
});

describe('a response with renewed cookies', () => {
  it('gives the text of a refused generation', async () => {
    await using world = startRenewing();
    world.upstream.on('POST /v1/music', () => Response.json({ message: 'No credits.' }, { status: 402 }));
    const response = await world.request(GENERATE.path, { cookie: REFRESH_ONLY, json: TRACK });
    expect(await envelopeMessage(response, 402)).toBe('No credits.');
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
  });

  it('is not kept by a cache, unlike the next one', async () => {
    const headers = { 'cache-control': 'public, max-age=3600', vary: 'Accept', 'x-ratelimit-used': '3' };
    await using world = startRenewing();
    world.upstream.on('GET /v1/library', () => new Response('x', { headers }));
    const renewed = await world.request(PROXIED_PATH, { cookie: REFRESH_ONLY });
    expect(storedTokens(renewed)).toEqual(NEW_TOKENS);
    const later = await world.request(PROXIED_PATH, { cookie: ACCESS_ONLY });
    expect(renewed.headers.get('cache-control')).toBe('no-store');
    expect(later.headers.get('cache-control')).toBe('public, max-age=3600');
    for (const response of [renewed, later]) {
      expect(response.headers.get('vary')).toBe('Origin, Cookie, Accept');
      expect(response.headers.get('access-control-expose-headers')).toContain('x-ratelimit-used');
    }
  });

  it('does not lose them when the connection of the 401 breaks during the refresh', async () => {
    let calls = 0;
    let first: { resetAndDestroy(): unknown } | undefined;
    await using upstream = await startRawUpstream((socket, request) => {
      const send = (body: string) =>
        socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
      if (request.startsWith(REFRESH)) {
        first?.resetAndDestroy();
        setImmediate(() => send(JSON.stringify(NEW_PAIR)));
      } else if (calls++ > 0) send('right');
      else {
        first = socket;
        socket.write('HTTP/1.1 401 Unauthorized\r\nContent-Length: 100000\r\n\r\npartial');
      }
    });
    await using own = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await own.request(PROXIED_PATH, { cookie: SIGNED_IN });
    expect(await response.text()).toBe('right');
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
  });
});

describe('public playback', () => {
  it.each([SIGNED_IN, REFRESH_ONLY])('neither sends credentials nor refreshes: %s', async (cookie) => {
    await using world = startRenewing();
    const call = PUBLIC.calls.join();
    const headers = { 'cache-control': 'max-age=60', 'set-cookie': 'a=b' };
    world.upstream.on(call, () => new Response('no', { status: 401, headers }));
    const response = await world.request(PUBLIC.path, { cookie });
    expect(response.status).toBe(401);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get('cache-control')).toBe('max-age=60');
    expect(response.headers.get('vary')).toBe('Origin');
    expect(world.upstream.calls).toEqual([call]);
    const sent = world.upstream.last(call).headers;
    for (const name of ['authorization', 'cookie', 'origin']) expect(sent.has(name), name).toBe(false);
  });
});
