import { describe, expect, it } from 'bun:test';
import { messages } from '../../src/gateway/http/messages.ts';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../support/metrics.ts';
import { type RawAnswer, rawRequest } from '../support/raw-http.ts';
import { envelopeMessage, ORIGIN, startWorld, type World } from '../support/world.ts';

/** All that a token may consist of. */
const VISIBLE_ASCII = Array.from({ length: 0x7e - 0x20 }, (_, index) =>
  String.fromCharCode(0x21 + index),
).join('');

function startScripted(): World {
  const world = startWorld();
  world.upstream
    .on('GET /v1/models', () => Response.json([]))
    .on('POST /v1/auth/refresh', () => Response.json({ access_token: 'renewed', refresh_token: 'next' }));
  return world;
}

/** Asks for the models with Cookie headers byte for byte as they are given. */
function askForModels(world: World, ...cookieHeaders: string[]): Promise<RawAnswer> {
  const cookies = cookieHeaders.map((value) => `Cookie: ${value}\r\n`).join('');
  return rawRequest(
    world.port,
    `GET /api/music/models HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\n${cookies}Connection: close\r\n\r\n`,
  );
}

async function expectHealthy(world: World): Promise<void> {
  const health = await world.request('/api/health', { origin: null });
  expect(health.status).toBe(200);
  expect(world.log).toEqual([]);
}

describe('an access cookie', () => {
  it.each([
    ['svc_music_access=a1', 'a1'],
    ['svc_music_access="quoted"', '"quoted"'],
    ['svc_music_access="half', '"half'],
    ["svc_music_access='a1'", "'a1'"],
    ['svc_music_access=a+b', 'a+b'],
    ['svc_music_access=a%2Bb', 'a+b'],
    ['svc_music_access=%252B', '%2B'],
    ['svc_music_access=100%25', '100%'],
    ['svc_music_access=a%3Bb%2Cc%3D', 'a;b,c='],
    ['svc_music_access=1|abc', '1|abc'],
    ['svc_music_access=a=b==', 'a=b=='],
    ['svc_music_access={"a":1}', '{"a":1}'],
    ['svc_music_access=%7B%22a%22%3A1%7D', '{"a":1}'],
    ['svc_music_access=[1]', '[1]'],
    ['svc_music_access=null', 'null'],
    ['svc_music_access=undefined', 'undefined'],
    ['svc_music_access=true', 'true'],
    ['svc_music_access=12345', '12345'],
    ['svc_music_access=a,svc_music_refresh=b', 'a,svc_music_refresh=b'],
    [`svc_music_access=${encodeURIComponent(VISIBLE_ASCII)}`, VISIBLE_ASCII],
    [`svc_music_access=${'a'.repeat(4000)}`, 'a'.repeat(4000)],
    [`svc_music_access=${'a'.repeat(15_000)}`, 'a'.repeat(15_000)],
    ['  svc_music_access=a1  ', 'a1'],
    [';;; ;svc_music_access=a1;;', 'a1'],
    ['other; svc_music_access=a1', 'a1'],
    ['=; =x; svc_music_access=a1', 'a1'],
    ['__proto__=x; constructor=y; svc_music_access=a1; toString=z', 'a1'],
    ['other=\x80\xff; svc_music_access=a1', 'a1'],
    ['other=%0d%0aX-Injected:%201; svc_music_access=a1', 'a1'],
    ['$Version=1; svc_music_access=a1; $Path=/', 'a1'],
    [`${'other=x; '.repeat(1500)}svc_music_access=a1`, 'a1'],
  ])('is the token, byte for byte: %j', async (cookie, token) => {
    await using world = startScripted();
    const answer = await askForModels(world, cookie);
    expect(answer.status).toBe(200);
    expect(world.upstream.calls).toEqual(['GET /v1/models']);
    const { headers } = world.upstream.last('GET /v1/models');
    expect(headers.get('authorization')).toBe(`Bearer ${token}`);
    expect([...headers.keys()].toSorted()).toEqual([
      'accept',
      'accept-encoding',
      'authorization',
      'connection',
      'host',
      'traceparent',
      'user-agent',
      'x-request-id',
    ]);
    await expectHealthy(world);
  });

  it.each([
    '',
    ';',
    '=',
    '==',
    'svc_music_access',
    'svc_music_access=',
    'svc_music_access= ',
    'svc_music_access=;',
    'svc_music_access=a%0d%0aX-Injected:%201',
    'svc_music_access=a%0ab',
    'svc_music_access=%0d%0a',
    'svc_music_access=a%00b',
    'svc_music_access=a%09b',
    'svc_music_access=a%7fb',
    'svc_music_access=a%20b',
    'svc_music_access=a b',
    'svc_music_access="a b"',
    'svc_music_access=a\tb',
    'svc_music_access=a\x7fb',
    'svc_music_access=\xe9',
    'svc_music_access=\xc3\xa9',
    'svc_music_access=%C3%A9',
    'svc_music_access=%E2%80%A8',
    'svc_music_access=%F0%9F%8E%B5',
    'svc_music_access=%c0%af',
    'svc_music_access=%ff',
    'xsvc_music_access=a1',
    'svc_music_access2=a1',
    'svc_music=a1',
    'SVC_MUSIC_ACCESS=a1',
    'Svc_Music_Access=a1',
    '%73vc_music_access=a1',
    'svc_music_access%3Da1',
    'svc_music_access:a1',
    '__proto__=a1',
    '__proto__=svc_music_access=a1',
    'svc_music_refresh=',
    'svc_music_refresh=a%0d%0ab; svc_music_access=%00',
  ])('that no token can be in counts as absent: %j', async (cookie) => {
    await using world = startScripted();
    const answer = await askForModels(world, cookie);
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body)).toEqual({ error: { message: 'You are not signed in.' } });
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
    await expectHealthy(world);
  });

  it.each(['100%', '%', '%zz', '%E0%A4%A', 'a%2'])(
    'with an escape that is none is absent, or the token as it stands: %j',
    async (value) => {
      await using world = startScripted();
      const answer = await askForModels(world, `svc_music_access=${value}`);
      const sent = world.upstream.received.map(({ headers }) => headers.get('authorization'));
      expect(sent).toEqual(answer.status === 401 ? [] : [`Bearer ${value}`]);
      expect(answer.status).toBeOneOf([200, 401]);
      await expectHealthy(world);
    },
  );

  it('may come in a second Cookie header', async () => {
    await using world = startScripted();
    const answer = await askForModels(world, 'other=x', 'svc_music_access=a1');
    expect(answer.status).toBe(200);
    expect(world.upstream.last('GET /v1/models').headers.get('authorization')).toBe('Bearer a1');
  });

  it.each(['a\x00b', 'a\x01b', 'a\x0bb', 'a\rb', 'a\nb', 'a\r\n b'])(
    'with a raw control character never reaches the upstream: %j',
    async (value) => {
      await using world = startScripted();
      const answer = await askForModels(world, `svc_music_access=${value}`);
      expect(answer.status).toBeOneOf([400, 401]);
      expect(world.upstream.calls).toEqual([]);
      await expectHealthy(world);
    },
  );

  it.each([
    ['one value', `svc_music_access=${'a'.repeat(17_000)}`],
    ['many values', 'other=x; '.repeat(20_000)],
  ])('header that is too large is refused by the server itself: %s', async (_, cookie) => {
    await using world = startScripted();
    const answer = await askForModels(world, cookie);
    expect(answer.status).toBe(431);
    expect(world.upstream.calls).toEqual([]);
    await expectHealthy(world);
  });
});

describe('a refresh cookie', () => {
  it.each([
    ['%22%2C%22admin%22%3A%22true', '","admin":"true'],
    ['%22%7D%7B%22', '"}{"'],
    ['a%5Cnb', 'a\\nb'],
    ['"quoted"', '"quoted"'],
    ['{"a":1}', '{"a":1}'],
    [encodeURIComponent(VISIBLE_ASCII), VISIBLE_ASCII],
  ])('is a string in the JSON of the refresh, whatever it holds: %j', async (value, token) => {
    await using world = startScripted();
    const answer = await askForModels(world, `svc_music_refresh=${value}`);
    expect(answer.status).toBe(200);
    expect(world.upstream.calls).toEqual(['POST /v1/auth/refresh', 'GET /v1/models']);
    expect(JSON.parse(world.upstream.last('POST /v1/auth/refresh').body)).toEqual({ refresh_token: token });
    expect(world.upstream.last('GET /v1/models').headers.get('authorization')).toBe('Bearer renewed');
  });

  it('that no token can be in is not used when the access token is refused', async () => {
    await using world = startScripted();
    world.upstream.on('GET /v1/models', () => new Response('no', { status: 401 }));
    const answer = await askForModels(world, 'svc_music_access=a1; svc_music_refresh=a%0d%0ab');
    expect(answer.status).toBe(401);
    expect(answer.body).toBe('no');
    expect(world.upstream.calls).toEqual(['GET /v1/models']);
  });

  it('is used alone when the access cookie cannot be a token', async () => {
    await using world = startScripted();
    const answer = await askForModels(world, 'svc_music_access=a%20b; svc_music_refresh=r1');
    expect(answer.status).toBe(200);
    expect(world.upstream.calls).toEqual(['POST /v1/auth/refresh', 'GET /v1/models']);
    expect(JSON.parse(world.upstream.last('POST /v1/auth/refresh').body)).toEqual({ refresh_token: 'r1' });
  });
});

describe('a session cookie that comes twice', () => {
  it.each([
    [['svc_music_access=one; svc_music_access=two']],
    [['svc_music_access=one', 'svc_music_access=two']],
    [['svc_music_access=one; other=x', 'other=y; svc_music_access=two']],
    [['svc_music_access=same; svc_music_access=same; svc_music_refresh=r1']],
    [['svc_music_access=one;svc_music_access=two']],
    [['svc_music_access=one;\t svc_music_access =two']],
    [['svc_music_access=; svc_music_access=two']],
    [['svc_music_access=one; svc_music_access=%00']],
    [['svc_music_access=%zz; svc_music_access=two']],
    [['svc_music_access=one; svc_music_refresh=r1; svc_music_refresh=r2']],
    [['svc_music_refresh=r1; svc_music_refresh=r2']],
    [['svc_music_access=one; svc_music_refresh=r1; svc_music_access=two; svc_music_refresh=r2']],
    [[`svc_music_access=one; ${'other=x; '.repeat(1500)}svc_music_access=two`]],
    [['svc_music_access=one; '.repeat(3)]],
  ])('is no session: %j', async (cookies) => {
    await using world = startScripted();
    const answer = await askForModels(world, ...cookies);
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body)).toEqual({ error: { message: messages.sessionCookieTwice.en } });
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
    expect(await world.line({ route: '/api/music/models' })).toMatchObject({ reason: 'sessionCookieTwice' });
    await expectHealthy(world);
  });

  it.each([
    ['svc_music_access=svc_music_access=x', 'svc_music_access=x'],
    ['svc_music_access=a1; other=svc_music_access=x', 'a1'],
    ['other="svc_music_access=x"; svc_music_access=a1', 'a1'],
    ['xsvc_music_access=x; svc_music_access=a1; svc_music_access2=y', 'a1'],
    ['svc_music_access; svc_music_access=a1', 'a1'],
    ['SVC_MUSIC_ACCESS=x; svc_music_access=a1', 'a1'],
    ['%73vc_music_access=x; svc_music_access=a1', 'a1'],
    ['__Host-svc_music_access=x; svc_music_access=a1', 'a1'],
  ])('is not one whose name another name or a value holds: %j', async (cookie, token) => {
    await using world = startScripted();
    const answer = await askForModels(world, cookie);
    expect(answer.status).toBe(200);
    expect(world.upstream.last('GET /v1/models').headers.get('authorization')).toBe(`Bearer ${token}`);
  });

  const TWICE = 'svc_music_access=one; svc_music_access=two; svc_music_refresh=r1; svc_music_refresh=r2';
  const ORDER = { model: 'm', prompt: 'p', music_length_ms: 3000 };
  it.each([
    ['GET', '/api/music/models', {}],
    ['POST', '/api/music/generate', { json: ORDER }],
    ['GET', '/api/upstream/v1/me', {}],
    ['PATCH', '/api/upstream/v1/music/creations/1', { body: '{}' }],
  ])('is 401 on every route that needs a session: %s %s', async (method, path, options) => {
    await using world = startWorld();
    const headers = { 'accept-language': 'sw' };
    const response = await world.request(path, { method, cookie: TWICE, headers, ...options });
    expect(await envelopeMessage(response, 401)).toBe(messages.sessionCookieTwice.sw);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });

  it('is counted in the metrics under a reason of its own', async () => {
    const metrics = new Metrics();
    await using world = startWorld({}, metrics);
    await world.request('/api/music/models', { cookie: TWICE });
    await world.request('/api/auth/session', { cookie: TWICE });
    const found = await samplesOf(metrics.registry);
    expect(found.get('errors_total{reason="sessionCookieTwice"}')).toBe(2);
    expect(found.get('errors_total{reason="notSignedIn"}')).toBe(0);
  });
});

describe('every route', () => {
  const hostile = 'svc_music_access=%00; svc_music_refresh=%C3%A9; __proto__=x; =; "; \x80';

  it('takes cookies that cannot be tokens for no session', async () => {
    await using world = startWorld();
    const call = (method: string, path: string) =>
      rawRequest(
        world.port,
        `${method} ${path} HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\nCookie: ${hostile}\r\n` +
          'Content-Length: 0\r\nConnection: close\r\n\r\n',
      );
    const session = await call('GET', '/api/auth/session');
    expect([session.status, session.body]).toEqual([200, '{"authenticated":false}']);
    const logout = await call('POST', '/api/auth/logout');
    expect([logout.status, logout.body]).toEqual([200, '{"ok":true}']);
    expect((await call('GET', '/api/upstream/v1/me')).status).toBe(401);
    expect((await call('POST', '/api/upstream/v1/me')).status).toBe(401);
    expect((await call('GET', '/api/health')).status).toBe(200);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });
});
