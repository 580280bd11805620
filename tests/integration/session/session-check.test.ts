import { describe, expect, it } from 'bun:test';
import { type MessageKey, messages } from '../../../src/gateway/http/messages.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import {
  accept,
  CLOSED,
  checkSession,
  expectRefused,
  ME,
  pair,
  REFRESH,
  reply,
  silence,
} from '../../support/session-calls.ts';
import { REFRESH_ONLY, SIGNED_IN, startWorld } from '../../support/world.ts';

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
  it('asks the upstream for the profile with the access token, and with nothing else of the browser', async () => {
    await using world = startWorld();
    world.upstream.on(ME, reply(200, { name: 'Asha' }));
    const response = await world.request('/api/auth/session?fields=all', {
      cookie: `${SIGNED_IN}; theme=dark`,
      headers: { accept: 'text/html', authorization: 'Bearer from-the-browser' },
    });
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual([ME]);
    const { headers, body } = world.upstream.last(ME);
    expect(headers.get('authorization')).toBe('Bearer access-1');
    expect(headers.get('accept')).toBe('application/json');
    expect(headers.get('cookie')).toBeNull();
    expect(headers.get('origin')).toBeNull();
    expect(body).toBe('');
  });

  it('relays the text and content type of the profile, and nothing else of the response', async () => {
    const profile = ' {"data" : {"id":12345678901234567890, "name":"Ash\\u00e1"}}\n';
    const contentType = 'application/vnd.profile+json; charset=utf-8';
    const others = { 'set-cookie': 'upstream=1', 'x-upstream': 'node-7', etag: '"1"' };
    const headers = { 'content-type': contentType, 'cache-control': 'public, max-age=60', ...others };
    await using world = startWorld();
    for (const coding of [undefined, 'gzip']) {
      const body = Buffer.from(profile);
      world.upstream.on(ME, () =>
        coding
          ? new Response(Bun.gzipSync(body), { headers: { ...headers, 'content-encoding': coding } })
          : new Response(body, { headers }),
      );
      const response = await checkSession(world, SIGNED_IN);
      expect(response.status).toBe(200);
      expect(await response.text()).toBe(profile);
      expect(response.headers.get('content-type')).toBe(contentType);
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      for (const name of [...Object.keys(others), 'content-encoding']) {
        expect(response.headers.get(name)).toBeNull();
      }
    }
  });

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

  it.each([201, 204, 302, 400, 403, 409, 410, 429, 500, 502, 503])(
    'passes on status %i with text and content type, and does not try again',
    async (status) => {
      await using world = startWorld();
      const text = status === 204 ? '' : `upstream says ${status}`;
      const headers = { 'content-type': 'text/x-odd', location: '/v1/elsewhere' };
      world.upstream.on(ME, () => new Response(text || null, { status, headers }));
      const response = await checkSession(world, SIGNED_IN);
      expect(response.status).toBe(status);
      expect(await response.text()).toBe(text);
      expect(response.headers.get('content-type')).toBe('text/x-odd');
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(world.upstream.calls).toEqual([ME]);
    },
  );

  it('responds 502 and logs it when a new token is too large for a cookie', async () => {
    await using world = startWorld();
    world.upstream.on(ME, accept('access-2'));
    world.upstream.on(REFRESH, reply(200, { ...pair(2), refresh_token: 'r'.repeat(4096) }));
    const response = await checkSession(world, SIGNED_IN);
    await expectRefused(response, 502, messages.tokensTooLarge);
    // The header says that a refresh was made, and the browser has nothing of it.
    expect(response.headers.get('server-timing')).toBeNull();
    expect(world.log).toHaveLength(1);
    expect(world.log.join()).not.toContain('rrrr');
  });
});

describe('GET /api/auth/session when the upstream fails', () => {
  it.each<[what: string, environment: Environment, reason: MessageKey, cause: string, outcome: string]>([
    ['away', { UPSTREAM_URL: CLOSED }, 'upstreamUnreachable', 'TypeError ECONNREFUSED', 'connection_refused'],
    ['late', { TIMEOUT_READ_MS: '50' }, 'upstreamTimeout', 'TimeoutError', 'http_response_timeout'],
  ])(
    'responds 502 because it is %s, and logs name and code of the error',
    async (_, environment, reason, cause, outcome) => {
      await using world = startWorld(environment);
      world.upstream.on(ME, silence);
      const response = await checkSession(world, SIGNED_IN);
      expect(await response.clone().text()).not.toContain('127.0.0.1');
      await expectRefused(response, 502, messages[reason]);
      expect(world.log).toHaveLength(1);
      expect(world.lines.at(-1)).toMatchObject({
        ...{ level: 'warn', method: 'GET', route: '/api/auth/session', status: 502, reason, cause },
        upstream: [{ call: 'me', outcome }],
      });
    },
  );

  it.each([
    ['closes the connection', ''],
    ['breaks off its response', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"name":'],
    ['does not speak HTTP', '220 mail.test ESMTP\r\n\r\n'],
  ])('responds 502 because it %s', async (_, bytes) => {
    await using upstream = await startRawUpstream((socket) => socket.end(bytes));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    await expectRefused(await checkSession(world, SIGNED_IN), 502, messages.upstreamUnreachable);
    expect(world.log).toHaveLength(1);
  });
});
