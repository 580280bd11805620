import { describe, expect, it } from 'bun:test';
import { messages } from '../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  ORIGIN,
  type RequestOptions,
  SIGNED_IN,
  startWorld,
  storedTokens,
  type World,
} from '../support/world.ts';

const VERIFIER = 'verifier-0123456789-0123456789-0123456789-x';
const GRANT = { code: 'code-1', code_verifier: VERIFIER };
const PAIR = { access_token: 'access-1', refresh_token: 'refresh-1' };
const BOTH_STEPS = ['POST /oauth/token', 'POST /v1/auth/idp'];
/** Nothing listens there. */
const CLOSED = 'http://127.0.0.1:1';

describe('POST /api/auth/idp', () => {
  it('answers ok and sets both session cookies, with the tokens nowhere else', async () => {
    await using world = startWorld();
    scriptSignIn(world, { ...PAIR, expires_in: 1200 });
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(await response.text()).toBe('{"ok":true}');
    expect(response.headers.getSetCookie()).toEqual([
      'svc_music_access=access-1; Path=/; Max-Age=1200; HttpOnly; SameSite=Lax',
      'svc_music_refresh=refresh-1; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
    ]);
    response.headers.delete('set-cookie');
    expect(JSON.stringify([...response.headers])).not.toMatch(/access-1|refresh-1|identity-1/);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
    expect(world.log).toEqual([]);
  });

  it('makes both cookies Secure in production', async () => {
    await using world = startWorld({ NODE_ENV: 'production' });
    scriptSignIn(world);
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(response.headers.getSetCookie()).toEqual([
      'svc_music_access=access-1; Path=/; Max-Age=900; Secure; HttpOnly; SameSite=Lax',
      'svc_music_refresh=refresh-1; Path=/; Max-Age=2592000; Secure; HttpOnly; SameSite=Lax',
    ]);
  });

  it('exchanges the code at the identity provider as a form', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    const response = await signIn(world);
    expect(response.status).toBe(200);
    const { headers, body } = world.upstream.last('POST /oauth/token');
    expect(body).toBe(
      `grant_type=authorization_code&code=code-1&code_verifier=${VERIFIER}&client_id=studio` +
        '&redirect_uri=http%3A%2F%2Fstudio.test%2Fcallback',
    );
    expect(headers.get('content-type')).toBe('application/x-www-form-urlencoded');
    expect(headers.get('accept')).toBe('application/json');
  });

  it('passes on code, verifier, client id and redirect URI unchanged, whatever characters they have', async () => {
    const code = ' 4/0A+b&c=d%20é"\u{1f3b5}';
    const redirectUri = 'https://studio.test/callback?next=%2Fmusic&x=1';
    await using world = startWorld({ IDP_CLIENT_ID: 'a client & more', IDP_REDIRECT_URI: redirectUri });
    scriptSignIn(world);
    const response = await signIn(world, { code, code_verifier: `${VERIFIER}~._-+ ` });
    expect(response.status).toBe(200);
    const { body } = world.upstream.last('POST /oauth/token');
    expect(body).toContain('&client_id=a+client+%26+more&');
    expect([...new URLSearchParams(body)]).toEqual([
      ['grant_type', 'authorization_code'],
      ['code', code],
      ['code_verifier', `${VERIFIER}~._-+ `],
      ['client_id', 'a client & more'],
      ['redirect_uri', redirectUri],
    ]);
  });

  it('sends the identity access token to the upstream as JSON', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    const response = await signIn(world);
    expect(response.status).toBe(200);
    const { headers, body } = world.upstream.last('POST /v1/auth/idp');
    expect(body).toBe('{"access_token":"identity-1"}');
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('accept')).toBe('application/json');
  });

  it('names the JSON field as configured', async () => {
    await using world = startWorld({ UPSTREAM_SIGN_IN_FIELD: 'identity_token' });
    scriptSignIn(world);
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(world.upstream.last('POST /v1/auth/idp').body).toBe('{"identity_token":"identity-1"}');
  });

  it('sends the identity access token byte for byte', async () => {
    const token = '{"a":1}|100%\\u002b';
    await using world = startWorld();
    scriptSignIn(world);
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: token }));
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(JSON.parse(world.upstream.last('POST /v1/auth/idp').body)).toEqual({ access_token: token });
  });

  it('asks the identity provider at IDP_URL and the upstream at UPSTREAM_URL', async () => {
    const asked: string[] = [];
    using provider = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: ({ method, url }) => {
        asked.push(`${method} ${new URL(url).pathname}`);
        return Response.json({ access_token: 'identity-1' });
      },
    });
    await using world = startWorld({ IDP_URL: `http://127.0.0.1:${provider.port}/tenant` });
    world.upstream.on('POST /v1/auth/idp', () => Response.json(PAIR));
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(asked).toEqual(['POST /tenant/oauth/token']);
    expect(world.upstream.calls).toEqual(['POST /v1/auth/idp']);
  });

  it('tells neither server of the browser: no cookie, Origin or Authorization', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    const response = await world.request('/api/auth/idp', {
      json: GRANT,
      cookie: SIGNED_IN,
      headers: { authorization: 'Bearer from-the-browser' },
    });
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
    for (const { headers } of world.upstream.received) {
      expect(headers.get('cookie')).toBeNull();
      expect(headers.get('origin')).toBeNull();
      expect(headers.get('authorization')).toBeNull();
    }
  });

  it('sets both cookies for a browser that sends a session cookie twice', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    const response = await world.request('/api/auth/idp', {
      json: GRANT,
      cookie: `${SIGNED_IN}; ${SIGNED_IN}`,
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('{"ok":true}');
    expect(response.headers.getSetCookie()).toHaveLength(2);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
  });

  it('accepts a form-encoded body', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    const response = await world.request('/api/auth/idp', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `code=a%2Bb+%C3%A9&code_verifier=${VERIFIER}`,
    });
    expect(response.status).toBe(200);
    expect(storedTokens(response)).toEqual({
      svc_music_access: 'access-1',
      svc_music_refresh: 'refresh-1',
    });
    expect(new URLSearchParams(world.upstream.last('POST /oauth/token').body).get('code')).toBe('a+b é');
  });

  it.each([
    'application/json; charset=utf-8',
    'application/json ; charset=utf-8',
    'Application/JSON',
    'application/json;charset="utf-8"',
  ])('accepts a body sent as %s', async (contentType) => {
    await using world = startWorld();
    scriptSignIn(world);
    const response = await world.request('/api/auth/idp', {
      json: GRANT,
      headers: { 'content-type': contentType },
    });
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
  });

  it('takes no notice of an identity access token that the browser sends along', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    const response = await signIn(world, {
      ...GRANT,
      access_token: 'from-the-browser',
      client_id: 'from-the-browser',
      redirect_uri: 'https://from-the-browser.test',
      grant_type: 'password',
    });
    expect(response.status).toBe(200);
    expect(JSON.stringify(world.upstream.received.map(({ body }) => body))).not.toContain('from-the-browser');
    expect(world.upstream.last('POST /oauth/token').body).toStartWith('grant_type=authorization_code&');
    expect(world.upstream.last('POST /v1/auth/idp').body).toBe('{"access_token":"identity-1"}');
  });
});

describe('POST /api/auth/idp keeps its response out of caches', () => {
  it.each<[status: number, what: string, options: RequestOptions, upstreamStatus?: number]>([
    [200, 'a success', { json: GRANT }],
    [400, 'bad input', { json: {} }],
    [400, 'malformed JSON', { method: 'POST', body: '{', headers: { 'content-type': 'application/json' } }],
    [403, 'a foreign origin', { json: GRANT, origin: 'https://elsewhere.test' }],
    [413, 'a large body', { json: 'x'.repeat(2 * 1024 * 1024) }],
    [422, 'a refusal of the upstream', { json: GRANT }, 422],
  ])('with %i for %s', async (status, _, options, upstreamStatus = 200) => {
    await using world = startWorld();
    scriptSignIn(world);
    world.upstream.on('POST /v1/auth/idp', () => Response.json(PAIR, { status: upstreamStatus }));
    const response = await world.request('/api/auth/idp', options);
    expect(response.status).toBe(status);
    expect(response.headers.get('cache-control')).toBe('no-store');
  });
});

describe('POST /api/auth/idp with bad input', () => {
  it('refuses an identity access token in place of a code', async () => {
    await using world = startWorld();
    const response = await signIn(world, { access_token: 'identity-1' });
    expect(await envelopeMessage(response, 400)).toBe(messages.codeInvalid.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['of 4097 characters', 'c'.repeat(4097)],
    ['null', null],
    ['a number', 12345],
    ['true', true],
    ['an array', ['code-1']],
    ['an object', { code: 'code-1' }],
  ])('refuses a code that is %s', async (_, code) => {
    await using world = startWorld();
    const response = await signIn(world, { code, code_verifier: VERIFIER });
    expect(await envelopeMessage(response, 400)).toBe(messages.codeInvalid.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['of 42 characters', 'v'.repeat(42)],
    ['of 4097 characters', 'v'.repeat(4097)],
    ['null', null],
    ['a number', 10 ** 50],
    ['an array of 43', Array.from({ length: 43 }, () => 'v')],
    ['an object', { length: 43 }],
  ])('refuses a verifier that is %s', async (_, codeVerifier) => {
    await using world = startWorld();
    const response = await signIn(world, { code: 'code-1', code_verifier: codeVerifier });
    expect(await envelopeMessage(response, 400)).toBe(messages.codeVerifierInvalid.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it.each([
    [43, 1],
    [44, 1],
    [128, 1],
    [4096, 4096],
  ])('accepts a verifier of %i characters and a code of %i', async (verifierLength, codeLength) => {
    await using world = startWorld();
    scriptSignIn(world);
    const [code, verifier] = ['c'.repeat(codeLength), 'v'.repeat(verifierLength)];
    const response = await signIn(world, { code, code_verifier: verifier });
    expect(response.status).toBe(200);
    expect(world.upstream.last('POST /oauth/token').body).toContain(
      `&code=${code}&code_verifier=${verifier}&`,
    );
  });

  it('names the field and its rule, and does not repeat what was sent', async () => {
    await using world = startWorld();
    const response = await signIn(world, { code: 'secret-code', code_verifier: 'secret-verifier' });
    const message = await envelopeMessage(response, 400);
    expect(message).toContain('code_verifier');
    expect(message).toContain('43');
    expect(message).not.toContain('secret');
  });

  it.each(['{', '', '{"code":}', "{'code':'x'}", '{"code":"x"} {}', 'code=code-1'])(
    'refuses the malformed JSON %j',
    async (body) => {
      await using world = startWorld();
      const response = await sendAs(world, 'application/json', body);
      expect(await envelopeMessage(response, 400)).toBe(messages.bodyMalformed.en);
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  it('refuses JSON that is not UTF-8', async () => {
    await using world = startWorld();
    const response = await world.request('/api/auth/idp', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify({ ...GRANT, code: 'caf\xe9' }), 'latin1'),
    });
    expect(await envelopeMessage(response, 400)).toBe(messages.bodyMalformed.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(['null', 'true', '43', '"code"', '[]', JSON.stringify([GRANT])])(
    'refuses %s, which is JSON but not an object',
    async (body) => {
      await using world = startWorld();
      const response = await sendAs(world, 'application/json', body);
      expect(await envelopeMessage(response, 400)).toBe(messages.bodyNotAnObject.en);
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  it('refuses a body without a content type', async () => {
    await using world = startWorld();
    const body = Buffer.from(JSON.stringify(GRANT));
    const response = await world.request('/api/auth/idp', { method: 'POST', body });
    expect(await envelopeMessage(response, 400)).toBe(messages.bodyNotAnObject.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it('refuses a request without a body', async () => {
    await using world = startWorld();
    const response = await world.request('/api/auth/idp', { method: 'POST' });
    expect(await envelopeMessage(response, 400)).toBe(messages.bodyNotAnObject.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(['text/plain', 'application/octet-stream', 'multipart/form-data; boundary=x', 'application/xml'])(
    'refuses a body sent as %s',
    async (contentType) => {
      await using world = startWorld();
      const response = await sendAs(world, contentType, JSON.stringify(GRANT));
      expect(await envelopeMessage(response, 400)).toBe(messages.bodyNotAnObject.en);
      expect(world.upstream.calls).toEqual([]);
      expect(world.log).toEqual([]);
    },
  );

  it('finds no fields in a __proto__ key', async () => {
    await using world = startWorld();
    const body = `{"__proto__":${JSON.stringify(GRANT)}}`;
    const response = await sendAs(world, 'application/json', body);
    expect(await envelopeMessage(response, 400)).toBe(messages.codeInvalid.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['missing', null],
    ['not allowed', 'https://elsewhere.test'],
    ['null', 'null'],
    ['allowed but for its scheme', ORIGIN.replace('http:', 'https:')],
  ])('answers 403 when the Origin is %s', async (_, origin) => {
    await using world = startWorld();
    const response = await world.request('/api/auth/idp', { json: GRANT, origin });
    expect(await envelopeMessage(response, 403)).toBe(messages.originNotAllowed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('POST /api/auth/idp reading the token pair', () => {
  it('takes the pair and its lifetime from data', async () => {
    await using world = startWorld();
    scriptSignIn(world, { data: { ...PAIR, expires_in: 60 }, expires_in: 7 });
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(response.headers.getSetCookie()).toEqual([
      'svc_music_access=access-1; Path=/; Max-Age=60; HttpOnly; SameSite=Lax',
      'svc_music_refresh=refresh-1; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
    ]);
  });

  it('takes it from data when the top level holds only half of it', async () => {
    await using world = startWorld();
    scriptSignIn(world, { access_token: 'half', data: PAIR });
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(storedTokens(response)).toEqual({
      svc_music_access: 'access-1',
      svc_music_refresh: 'refresh-1',
    });
  });

  it('takes it from the top level when both hold one', async () => {
    await using world = startWorld();
    scriptSignIn(world, { ...PAIR, data: { access_token: 'inner-a', refresh_token: 'inner-r' } });
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(storedTokens(response)).toEqual({
      svc_music_access: 'access-1',
      svc_music_refresh: 'refresh-1',
    });
  });

  it('takes it from any success, such as a 201', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    world.upstream.on('POST /v1/auth/idp', () => Response.json(PAIR, { status: 201 }));
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(response.headers.getSetCookie()).toHaveLength(2);
  });

  it.each([
    ['1', 1],
    ['1200', 1200],
    ['0', 900],
    ['null', 900],
    ['false', 900],
    ['""', 900],
    ['"3600"', 3600],
    ['"soon"', 900],
    ['{}', 900],
    ['{"valueOf":1,"toString":1}', 900],
    ['-1', 900],
    ['0.5', 900],
    ['59.9', 59],
    ['34560000', 34_560_000],
    ['34560001', 34_560_000],
    ['1e300', 34_560_000],
    ['1e999', 34_560_000],
  ])('with an expires_in of %s keeps the access cookie for %i seconds', async (expiresIn, seconds) => {
    await using world = startWorld();
    scriptSignIn(world);
    const body = `{"access_token":"a","refresh_token":"r","expires_in":${expiresIn}}`;
    world.upstream.on('POST /v1/auth/idp', () => new Response(body));
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(response.headers.getSetCookie()).toEqual([
      `svc_music_access=a; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax`,
      'svc_music_refresh=r; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
    ]);
  });

  it.each([
    '',
    'null',
    '[]',
    '"access-1"',
    'not JSON',
    '{"access_token":"a","refresh_token":"r"',
    '{}',
    '{"access_token":"a"}',
    '{"refresh_token":"r"}',
    '{"access_token":"","refresh_token":"r"}',
    '{"access_token":"a","refresh_token":""}',
    '{"access_token":1,"refresh_token":"r"}',
    '{"access_token":"a","refresh_token":null}',
    '{"access_token":"a","refresh_token":["r"]}',
    '{"accessToken":"a","refreshToken":"r"}',
    '{"access_token":"a","data":{"refresh_token":"r"}}',
    '{"data":{"access_token":"a"}}',
    '{"data":[{"access_token":"a","refresh_token":"r"}]}',
    '{"data":{"data":{"access_token":"a","refresh_token":"r"}}}',
    '[{"access_token":"a","refresh_token":"r"}]',
    '{"__proto__":{"access_token":"a","refresh_token":"r"}}',
  ])('answers 502 to the malformed pair %j', async (body) => {
    await using world = startWorld();
    scriptSignIn(world);
    world.upstream.on('POST /v1/auth/idp', () => new Response(body));
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).toBe(messages.signInFailed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
    expect(world.log).toHaveLength(1);
  });

  const INVALID_TOKENS = ['a b', ' a', 'a\n', 'a\r\nset-cookie: x=y', 'a\u0000', 'a\u007f', 'é', '\u{1f3b5}'];

  it.each(INVALID_TOKENS)('answers 502 to the access token %j', async (token) => {
    await using world = startWorld();
    scriptSignIn(world, { ...PAIR, access_token: token });
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).toBe(messages.signInFailed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  it.each(INVALID_TOKENS)('answers 502 to the refresh token %j', async (token) => {
    await using world = startWorld();
    scriptSignIn(world, { ...PAIR, refresh_token: token });
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).toBe(messages.signInFailed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  it('stores every visible ASCII character so that it reaches the upstream unchanged', async () => {
    const token = String.fromCharCode(...Array.from({ length: 0x7e - 0x20 }, (_, index) => 0x21 + index));
    await using world = startWorld();
    scriptSignIn(world, { access_token: token, refresh_token: `r${token}` });
    world.upstream
      .on('GET /v1/me', () => new Response(null, { status: 401 }))
      .on('POST /v1/auth/refresh', () => Response.json({ access_token: 'a', refresh_token: 'r' }));
    const cookie = cookiesOf(await signIn(world));
    const response = await world.request('/api/auth/session', { cookie });
    expect(response.status).toBe(401);
    const [first] = world.upstream.received.filter(({ target }) => target === '/v1/me');
    expect(first?.headers.get('authorization')).toBe(`Bearer ${token}`);
    expect(JSON.parse(world.upstream.last('POST /v1/auth/refresh').body)).toEqual({
      refresh_token: `r${token}`,
    });
  });

  it.each([
    ['name and value of the access cookie', 'svc_music_access', 'a'.repeat(4096 - 16)],
    ['name and value of the refresh cookie', 'svc_music_refresh', 'r'.repeat(4096 - 17)],
    ['a value that the cookie escapes', 'svc_music_access', '%'.repeat((4096 - 16) / 3)],
  ])('stores 4096 bytes of %s', async (_, name, token) => {
    await using world = startWorld();
    scriptSignIn(world, withToken(name, token));
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(storedTokens(response)[name]).toBe(token);
    const [stored] = response.headers.getSetCookie().filter((cookie) => cookie.startsWith(name));
    expect(stored?.split(';')[0]).toHaveLength(4096 + '='.length);
  });

  it.each([
    ['name and value of the access cookie', 'svc_music_access', 'a'.repeat(4097 - 16)],
    ['name and value of the refresh cookie', 'svc_music_refresh', 'r'.repeat(4097 - 17)],
    ['a value that the cookie escapes', 'svc_music_access', `a${'%'.repeat((4096 - 16) / 3)}`],
  ])('answers 502 to 4097 bytes of %s, which a browser would drop', async (_, name, token) => {
    await using world = startWorld();
    scriptSignIn(world, withToken(name, token));
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).toBe(messages.tokensTooLarge.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.log).toHaveLength(1);
    expect(world.log[0]).toContain('"reason":"tokensTooLarge"');
    expect(world.log[0]).not.toContain(token.slice(0, 20));
  });
});

describe('POST /api/auth/idp when the identity provider fails', () => {
  it.each([400, 401, 403, 404, 429])('passes on its status %i', async (status) => {
    await using world = startWorld();
    world.upstream.on('POST /oauth/token', () => Response.json({ error: 'invalid_grant' }, { status }));
    const response = await signIn(world);
    expect(await envelopeMessage(response, status)).toBe(messages.signInRefused.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
    expect(world.log).toEqual([]);
  });

  it.each([500, 503, 599])('passes on its status %i as a problem of its own, and warns', async (status) => {
    await using world = startWorld();
    world.upstream.on('POST /oauth/token', () => Response.json({ error: 'server_error' }, { status }));
    const response = await signIn(world);
    expect(await envelopeMessage(response, status)).toBe(messages.identityProviderFailed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
    expect(world.log).toHaveLength(1);
    expect(world.lines.at(-1)).toMatchObject({ level: 'warn', status, reason: 'identityProviderFailed' });
  });

  it.each([
    [400, 400],
    [401, 401],
    [200, 401],
    [500, 500],
  ])(
    'passes on invalid_client with %i as %i, a fault of the registration, and warns',
    async (given, status) => {
      await using world = startWorld();
      const body = { error: 'invalid_client', error_description: 'secret' };
      world.upstream.on('POST /oauth/token', () => Response.json(body, { status: given }));
      const response = await signIn(world);
      expect(await envelopeMessage(response, status)).toBe(messages.clientRefused.en);
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(world.upstream.calls).toEqual(['POST /oauth/token']);
      expect(world.log).toHaveLength(1);
      expect(world.log.join()).not.toContain('secret');
      const line = { level: 'warn', status, reason: 'clientRefused', oauthError: 'invalid_client' };
      expect(world.lines.at(-1)).toMatchObject(line);
    },
  );

  it.each([
    ['{"error":"invalid_request"}', 'invalid_request'],
    ['{"error":"invalid_grant","error_description":"secret"}', 'invalid_grant'],
    ['{"error":"unauthorized_client"}', 'unauthorized_client'],
    ['{"error":"unsupported_grant_type"}', 'unsupported_grant_type'],
    ['{"error":"invalid_scope"}', 'invalid_scope'],
    ['{"error":"slow_down"}', 'other'],
    ['{"error":"secret"}', 'other'],
    ['{"error":"other"}', 'other'],
    ['{"error":""}', 'other'],
    ['{"error":{"message":"secret"}}', undefined],
    ['{"error":["invalid_client"]}', undefined],
    ['{"message":"secret"}', undefined],
    ['invalid_client', undefined],
    ['null', undefined],
    ['', undefined],
  ])('logs its error %s as %p', async (body, oauthError) => {
    await using world = startWorld();
    world.upstream.on('POST /oauth/token', () => new Response(body, { status: 400 }));
    const response = await signIn(world);
    expect(await envelopeMessage(response, 400)).toBe(messages.signInRefused.en);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
    expect(world.lines.at(-1)).toMatchObject({ level: 'info', status: 400, reason: 'signInRefused' });
    expect(world.lines.at(-1)?.['oauthError']).toBe(oauthError);
    expect(JSON.stringify(world.lines)).not.toContain('secret');
  });

  it('has no error in the line of a sign-in that works', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    const body = { access_token: 'identity-1', error: 'invalid_client' };
    world.upstream.on('POST /oauth/token', () => Response.json(body));
    expect((await signIn(world)).status).toBe(200);
    expect(world.lines.at(-1)).not.toHaveProperty('oauthError');
  });

  it('says what is wrong in Swahili too', async () => {
    await using world = startWorld();
    const headers = { 'accept-language': 'sw' };
    world.upstream.on('POST /oauth/token', () => new Response('', { status: 503 }));
    const failed = await world.request('/api/auth/idp', { json: GRANT, headers });
    expect(await envelopeMessage(failed, 503)).toBe(messages.identityProviderFailed.sw);
    world.upstream.on('POST /oauth/token', () => Response.json({ error: 'invalid_client' }, { status: 401 }));
    const refused = await world.request('/api/auth/idp', { json: GRANT, headers });
    expect(await envelopeMessage(refused, 401)).toBe(messages.clientRefused.sw);
  });

  it('takes no token from an answer that is not a success', async () => {
    await using world = startWorld();
    world.upstream.on('POST /oauth/token', () =>
      Response.json({ access_token: 'identity-1' }, { status: 400 }),
    );
    const response = await signIn(world);
    expect(await envelopeMessage(response, 400)).toBe(messages.signInRefused.en);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
  });

  it.each([
    '',
    'not JSON',
    'null',
    '[]',
    '{}',
    '{"access_token":""}',
    '{"access_token":null}',
    '{"access_token":42}',
    '{"access_token":"identity 1"}',
    '{"access_token":"identity\\n1"}',
    '{"access_token":"idéntity"}',
    '{"data":{"access_token":"identity-1"}}',
    '{"id_token":"identity-1"}',
    'access_token=identity-1&token_type=bearer',
  ])('answers 401 to its answer %j, which holds no identity access token', async (body) => {
    await using world = startWorld();
    world.upstream.on('POST /oauth/token', () => new Response(body));
    const response = await signIn(world);
    expect(await envelopeMessage(response, 401)).toBe(messages.signInRefused.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
  });

  it('answers 401 to a redirect, and does not follow it', async () => {
    await using world = startWorld();
    const location = `${world.upstream.identityProviderUrl}/elsewhere`;
    world.upstream.on(
      'POST /oauth/token',
      () => new Response('{"access_token":"identity-1"}', { status: 307, headers: { location } }),
    );
    const response = await signIn(world);
    expect(await envelopeMessage(response, 401)).toBe(messages.signInRefused.en);
    expect(response.headers.get('location')).toBeNull();
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
  });

  it('answers 502 when it cannot be reached', async () => {
    await using world = startWorld({ IDP_URL: CLOSED });
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).not.toContain('127.0.0.1');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toHaveLength(1);
    expect(world.lines.at(-1)).toMatchObject({ status: 502, reason: 'identityProviderUnreachable' });
  });

  it('answers 502 when it does not answer in time', async () => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '50' });
    const never = Promise.withResolvers<Response>();
    world.upstream.on('POST /oauth/token', () => never.promise);
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).toBe(messages.identityProviderTimeout.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
    expect(world.log).toHaveLength(1);
    never.resolve(new Response());
  });

  it('answers 502 when its answer breaks off before the end', async () => {
    await using provider = await startRawUpstream((socket) =>
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"access_token":"identity-1"}'),
    );
    await using world = startWorld({ IDP_URL: provider.url });
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).toBe(messages.identityProviderUnreachable.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('POST /api/auth/idp when the upstream fails', () => {
  it.each([400, 401, 403, 404, 409, 422, 429])('passes on its status %i', async (status) => {
    await using world = startWorld();
    scriptSignIn(world);
    world.upstream.on('POST /v1/auth/idp', () => Response.json(PAIR, { status }));
    const response = await signIn(world);
    expect(await envelopeMessage(response, status)).toBe(messages.signInFailed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
    expect(world.log).toEqual([]);
  });

  it.each([500, 503])('passes on its status %i, logs it and does not try again', async (status) => {
    await using world = startWorld();
    scriptSignIn(world);
    world.upstream.on('POST /v1/auth/idp', () => Response.json(PAIR, { status }));
    const response = await signIn(world);
    expect(await envelopeMessage(response, status)).toBe(messages.signInFailed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
    expect(world.log).toHaveLength(1);
  });

  it('answers 502 to a redirect, and does not send the identity access token on', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    const location = `${world.upstream.upstreamUrl}/v1/elsewhere`;
    world.upstream.on(
      'POST /v1/auth/idp',
      () => new Response(JSON.stringify(PAIR), { status: 307, headers: { location } }),
    );
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).toBe(messages.signInFailed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
  });

  it('answers 502 to an empty success', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    world.upstream.on('POST /v1/auth/idp', () => new Response(null, { status: 204 }));
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).toBe(messages.signInFailed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  it('answers 502 to a status that is none', async () => {
    await using upstream = await startRawUpstream((socket) =>
      socket.end('HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n'),
    );
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    scriptSignIn(world);
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).toBe(messages.upstreamInvalid.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
  });

  it('answers 502 when it cannot be reached', async () => {
    await using world = startWorld({ UPSTREAM_URL: CLOSED });
    scriptSignIn(world);
    const response = await signIn(world);
    const message = await envelopeMessage(response, 502);
    expect(message).toBe(messages.upstreamUnreachable.en);
    expect(message).not.toContain('127.0.0.1');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
    expect(world.log).toHaveLength(1);
  });

  it('answers 502 when it does not answer in time', async () => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '300' });
    const never = Promise.withResolvers<Response>();
    scriptSignIn(world);
    world.upstream.on('POST /v1/auth/idp', () => never.promise);
    const response = await signIn(world);
    expect(await envelopeMessage(response, 502)).toBe(messages.upstreamTimeout.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
    never.resolve(new Response());
  });

  it('leaves the cookies of an earlier session alone', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    world.upstream.on('POST /v1/auth/idp', () => new Response(null, { status: 401 }));
    const response = await world.request('/api/auth/idp', { json: GRANT, cookie: ACCESS_ONLY });
    expect(response.status).toBe(401);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
  });
});

describe('POST /api/auth/idp keeping secrets', () => {
  const SECRETS = { access_token: 'secret-access', refresh_token: 'secret-refresh', code: 'secret-code' };
  const leaky = (status: number) => () =>
    Response.json({ ...SECRETS, error: { message: 'secret-code' }, message: 'secret-code' }, { status });
  const malformed = () => Response.json({ ...SECRETS, refresh_token: 'secret refresh' });
  const tooLarge = () => Response.json({ ...SECRETS, refresh_token: 'secret'.repeat(1000) });

  it.each([
    ['the identity provider refuses and quotes the code', leaky(400), leaky(200)],
    ['the identity provider breaks down and quotes the code', leaky(500), leaky(200)],
    ['the upstream refuses and quotes the tokens', leaky(200), leaky(401)],
    ['the upstream breaks down and quotes the tokens', leaky(200), leaky(500)],
    ['the token pair is malformed', leaky(200), malformed],
    ['the token pair is too large', leaky(200), tooLarge],
  ])('says and logs no code, verifier or token when %s', async (_, provider, upstream) => {
    await using world = startWorld();
    world.upstream.on('POST /oauth/token', provider).on('POST /v1/auth/idp', upstream);
    const response = await signIn(world, { code: 'secret-code', code_verifier: 'secret'.repeat(8) });
    expect(response.status).toBeGreaterThanOrEqual(400);
    expect(await response.text()).not.toContain('secret');
    expect(JSON.stringify([...response.headers])).not.toContain('secret');
    expect(world.log.join('\n')).not.toContain('secret');
  });

  it.each([
    ['identity provider', { IDP_URL: CLOSED }],
    ['upstream', { UPSTREAM_URL: CLOSED }],
  ])('says and logs no code, verifier, token or address when the %s is away', async (_, environment) => {
    await using world = startWorld(environment);
    world.upstream.on('POST /oauth/token', leaky(200));
    const response = await signIn(world, { code: 'secret-code', code_verifier: 'secret'.repeat(8) });
    expect(response.status).toBe(502);
    expect(await response.text()).not.toMatch(/secret|127\.0\.0\.1/);
    expect(world.log).toHaveLength(1);
    expect(world.log.join('\n')).not.toContain('secret');
  });
});

function signIn(world: World, grant: unknown = GRANT): Promise<Response> {
  return world.request('/api/auth/idp', { json: grant });
}

function sendAs(world: World, contentType: string, body: string): Promise<Response> {
  return world.request('/api/auth/idp', { method: 'POST', headers: { 'content-type': contentType }, body });
}

/** The identity provider gives `identity-1`, for which the upstream gives the pair. */
function scriptSignIn({ upstream }: World, pair: unknown = PAIR): void {
  upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity-1', token_type: 'Bearer' }))
    .on('POST /v1/auth/idp', () => Response.json(pair));
}

function withToken(cookieName: string, token: string): unknown {
  return { ...PAIR, [cookieName === 'svc_music_access' ? 'access_token' : 'refresh_token']: token };
}

/** What a browser sends back of the cookies that it was given. */
function cookiesOf(response: Response): string {
  return response.headers
    .getSetCookie()
    .map((cookie) => cookie.slice(0, cookie.indexOf(';')))
    .join('; ');
}
