import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../../support/metrics.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { checkSession, REFRESH, reply } from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, ORIGIN, startWorld } from '../../support/world.ts';

const MODELS = 'GET /v1/models';
/** All that a token may consist of. */
const VISIBLE_ASCII = String.fromCharCode(...Array.from({ length: 0x7e - 0x20 }, (_, index) => 0x21 + index));
const OTHERS = 'other=x; '.repeat(1500);

const world = sharedWorld();
world.upstream
  .on(MODELS, () => Response.json([]))
  .on(REFRESH, reply(200, { access_token: 'renewed', refresh_token: 'next' }));

/** Sends a request with Cookie headers byte for byte as they are given. */
function send(target: string, ...cookieHeaders: string[]) {
  const cookies = cookieHeaders.map((value) => `Cookie: ${value}\r\n`).join('');
  const rest = `Origin: ${ORIGIN}\r\n${cookies}Content-Length: 0\r\nConnection: close\r\n\r\n`;
  return rawRequest(world.port, `${target} HTTP/1.1\r\nHost: gateway.test\r\n${rest}`);
}

function askForModels(...cookieHeaders: string[]) {
  return send('GET /api/music/models', ...cookieHeaders);
}

async function expectHealthy(): Promise<void> {
  const health = await world.request('/api/health', { origin: null });
  expect(health.status).toBe(200);
  expect(world.log).toEqual([]);
}

/** Asks for the models once with each header, and asserts that the upstream gets this access token. */
async function expectTokens(headers: readonly (readonly [cookie: string, token: string])[]): Promise<void> {
  for (const [index, [cookie, token]] of headers.entries()) {
    const response = await askForModels(cookie);
    expect(response.status, cookie).toBe(200);
    expect(world.upstream.calls).toHaveLength(index + 1);
    const received = world.upstream.last(MODELS).headers;
    expect(received.get('authorization'), cookie).toBe(`Bearer ${token}`);
    const names = 'accept accept-encoding authorization connection host traceparent user-agent x-request-id';
    expect([...received.keys()].toSorted(), cookie).toEqual(names.split(' '));
  }
  await expectHealthy();
}

/** Asks for the models once with each header, and asserts that none of them is a session. */
async function expectNoSession(headers: readonly string[], message: string): Promise<void> {
  for (const cookie of headers) {
    const response = await askForModels(...cookie.split('\n'));
    expect(response.status, cookie).toBe(401);
    expect(JSON.parse(response.body), cookie).toEqual({ error: { message } });
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.getSetCookie()).toEqual([]);
  }
  expect(world.upstream.calls).toEqual([]);
  await expectHealthy();
}

describe('an access cookie', () => {
  it.each<[what: string, values: readonly (readonly [value: string, token: string])[]]>([
    ['quoted', [['"quoted"'], ['"half'], ["'a1'"]].map(([value = '']) => [value, value])],
    [
      'escaped',
      ['a+b', '%2B', '100%', 'a;b,c=', VISIBLE_ASCII].map((each) => [encodeURIComponent(each), each]),
    ],
    ['JSON', ['{"a":1}', '[1]', 'null', 'undefined', 'true', '12345'].map((value) => [value, value])],
    ['escaped JSON', [['%7B%22a%22%3A1%7D', '{"a":1}']]],
    ['with signs of cookies', ['a+b', '1|abc', 'a=b==', 'a,svc_music_refresh=b'].map((each) => [each, each])],
    ['long', [4000, 15_000].map((length) => ['a'.repeat(length), 'a'.repeat(length)])],
  ])('is the token byte for byte when it is %s', (_, values) =>
    expectTokens(values.map(([value, token]) => [`svc_music_access=${value}`, token])),
  );

  it.each([
    ['white space and separators', ['  @  ', ';;; ;@;;', '=; =x; @']],
    ['names of object properties', ['__proto__=x; constructor=y; @; toString=z', '$Version=1; @; $Path=/']],
    ['bad values', ['other; @', 'other=\x80\xff; @', 'other=%0d%0aX-Injected:%201; @']],
    ['very many others', [`${OTHERS}@`]],
    ['similar names', ['xsvc_music_access=x; @; svc_music_access2=y', 'svc_music_access; @']],
    ['its name in other letters', ['SVC_MUSIC_ACCESS=x; @', '%73vc_music_access=x; @']],
    ['its name with a prefix', ['__Host-svc_music_access=x; @']],
    ['its name in another value', ['@; other=svc_music_access=x', 'other="svc_music_access=x"; @']],
  ])('is found once among %s', (_, headers) =>
    expectTokens(headers.map((header) => [header.replace('@', 'svc_music_access=a1'), 'a1'])),
  );

  it.each([
    ['nothing', ['', ' ', ';']],
    ['an escaped control character', ['a%0d%0aX:%201', 'a%0ab', '%0d%0a', 'a%00b', 'a%09b', 'a%7fb']],
    ['white space', ['a%20b', 'a b', '"a b"', 'a\tb', 'a\x7fb']],
    ['letters outside ASCII', ['\xe9', '\xc3\xa9', '%C3%A9', '%E2%80%A8', '%F0%9F%8E%B5', '%c0%af', '%ff']],
    [
      'no token, like that of the refresh cookie',
      ['%00; svc_music_refresh=a%0d%0ab', '; svc_music_refresh='],
    ],
  ])('counts as absent when its value has %s', (_, values) =>
    expectNoSession(values.map(accessCookie), messages.en.notSignedIn),
  );

  it.each([
    ['missing', ['', ';', '=', '==', 'svc_music_access', 'svc_music_access:a1', 'svc_music_access%3Da1']],
    ['longer or shorter', ['xsvc_music_access=a1', 'svc_music_access2=a1', 'svc_music=a1']],
    ['in other letters', ['SVC_MUSIC_ACCESS=a1', 'Svc_Music_Access=a1', '%73vc_music_access=a1']],
    ['that of a prototype', ['__proto__=a1', '__proto__=svc_music_access=a1']],
  ])('counts as absent when its name is %s', (_, headers) =>
    expectNoSession(headers, messages.en.notSignedIn),
  );

  it('with a malformed escape is absent, or the token as it stands', async () => {
    for (const value of ['100%', '%', '%zz', '%E0%A4%A', 'a%2']) {
      const before = world.upstream.received.length;
      const { status } = await askForModels(accessCookie(value));
      const sent = world.upstream.received.slice(before).map(({ headers }) => headers.get('authorization'));
      expect(status).toBeOneOf([200, 401]);
      expect(sent).toEqual(status === 401 ? [] : [`Bearer ${value}`]);
    }
    await expectHealthy();
  });

  it('may be in a second Cookie header', async () => {
    expect((await askForModels('other=x', 'svc_music_access=a1')).status).toBe(200);
    expect(world.upstream.last(MODELS).headers.get('authorization')).toBe('Bearer a1');
  });

  it.each([
    ['a control character', [400, 401], ['a\x00b', 'a\x01b', 'a\x0bb', 'a\rb', 'a\nb', 'a\r\n b']],
    ['one value too large for a header', [431], ['a'.repeat(17_000)]],
    ['too many values for a header', [431], [`a; ${'other=x; '.repeat(20_000)}`]],
  ])('with %s never reaches the upstream', async (_, statuses, values) => {
    for (const value of values) {
      expect((await askForModels(accessCookie(value))).status).toBeOneOf(statuses);
    }
    expect(world.upstream.calls).toEqual([]);
    await expectHealthy();
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
    ['r1; svc_music_access=a%20b', 'r1'],
  ])(
    'is a string in the JSON of the refresh, and is used without a valid access cookie: %j',
    async (value, token) => {
      expect((await askForModels(`svc_music_refresh=${value}`)).status).toBe(200);
      expect(world.upstream.calls).toEqual([REFRESH, MODELS]);
      expect(JSON.parse(world.upstream.last(REFRESH).body)).toEqual({ refresh_token: token });
      expect(world.upstream.last(MODELS).headers.get('authorization')).toBe('Bearer renewed');
    },
  );

  it('that is no token is not used when the access token is refused', async () => {
    await using refusing = startWorld();
    refusing.upstream.on(MODELS, () => new Response('no', { status: 401 }));
    const cookie = 'svc_music_access=a1; svc_music_refresh=a%0d%0ab';
    const response = await refusing.request('/api/music/models', { cookie });
    expect(response.status).toBe(401);
    expect(await response.text()).toBe('no');
    expect(refusing.upstream.calls).toEqual([MODELS]);
  });
});

describe('a session cookie that was sent twice', () => {
  const [ONE, TWO] = ['svc_music_access=one', 'svc_music_access=two'];
  const TWICE = `${ONE}; ${TWO}; svc_music_refresh=r1; svc_music_refresh=r2`;

  it.each([
    [
      'in one header',
      [`${ONE}; ${TWO}`, `${ONE};${TWO}`, `${ONE};\t svc_music_access =two`, `${ONE}; `.repeat(3)],
    ],
    ['in two headers', [`${ONE}\n${TWO}`, `${ONE}; other=x\nother=y; ${TWO}`]],
    ['with the same value', [`${ONE}; ${ONE}; svc_music_refresh=r1`]],
    ['with a value that is no token', ['', '%00', '%zz'].map((value) => `svc_music_access=${value}; ${TWO}`)],
    ['after the other one', [`${ONE}; svc_music_refresh=r1; svc_music_refresh=r2`]],
    ['alone', ['svc_music_refresh=r1; svc_music_refresh=r2']],
    ['with the other one', [TWICE, `${ONE}; svc_music_refresh=r1; ${TWO}; svc_music_refresh=r2`]],
    ['far apart', [`${ONE}; ${OTHERS}${TWO}`]],
  ])('%s is no session', (_, headers) => expectNoSession(headers, messages.en.sessionCookieTwice));

  it.each([
    ['GET', '/api/music/models', {}],
    ['POST', '/api/music/generate', { json: { model: 'm', prompt: 'p', music_length_ms: 3000 } }],
    ['GET', '/api/upstream/v1/me', {}],
    ['PATCH', '/api/upstream/v1/music/creations/1', { body: '{}' }],
  ])('gets 401 from %s %s, with a reason of its own in log and metrics', async (method, path, options) => {
    const metrics = new Metrics();
    await using counted = startWorld({}, metrics);
    const headers = { 'accept-language': 'sw' };
    const response = await counted.request(path, { method, cookie: TWICE, headers, ...options });
    expect(await envelopeMessage(response, 401)).toBe(messages.sw.sessionCookieTwice);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(counted.upstream.calls).toEqual([]);
    expect(await counted.line({ status: 401 })).toMatchObject({ reason: 'sessionCookieTwice' });
    await checkSession(counted, TWICE);
    const found = await samplesOf(metrics.registry);
    expect(found.get('errors_total{reason="sessionCookieTwice"}')).toBe(2);
    expect(found.get('errors_total{reason="notSignedIn"}')).toBe(0);
  });
});

it('Cookies that are no tokens are no session on every route', async () => {
  const hostile = 'svc_music_access=%00; svc_music_refresh=%C3%A9; __proto__=x; =; "; \x80';
  const session = await send('GET /api/auth/session', hostile);
  expect([session.status, session.body]).toEqual([200, '{"authenticated":false}']);
  const logout = await send('POST /api/auth/logout', hostile);
  expect([logout.status, logout.body]).toEqual([200, '{"ok":true}']);
  expect((await send('POST /api/upstream/v1/me', hostile)).status).toBe(401);
  expect((await send('GET /api/health', hostile)).status).toBe(200);
  expect(world.upstream.calls).toEqual([]);
  expect(world.log).toEqual([]);
});

function accessCookie(value: string): string {
  return `svc_music_access=${value}`;
}
