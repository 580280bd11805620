import { describe, expect, it } from 'bun:test';
import { rawRequest } from '../support/raw-http.ts';
import {
  envelopeMessage,
  ORIGIN,
  type RequestOptions,
  SIGNED_IN,
  startWorld,
  type World,
} from '../support/world.ts';

const LIMIT_BYTES = 2 * 1024 * 1024;
const VERIFIER = 'v'.repeat(43);
const SIGN_IN = `{"code":"c","code_verifier":"${VERIFIER}"}`;
const GENERATION = '{"model":"m","prompt":"p","music_length_ms":3000}';

interface Route {
  readonly name: string;
  readonly path: string;
  /** The upstream calls of a request that is accepted. */
  readonly calls: readonly string[];
  readonly body: string;
}

const ROUTES: Route[] = [
  {
    name: 'sign-in',
    path: '/api/auth/idp',
    calls: ['POST /oauth/token', 'POST /v1/auth/idp'],
    body: SIGN_IN,
  },
  {
    name: 'generate',
    path: '/api/music/generate',
    calls: ['POST /v1/music'],
    body: GENERATION,
  },
  {
    name: 'the proxy',
    path: '/api/upstream/v1/upload',
    calls: ['POST /v1/upload'],
    body: '{"any":"thing"}',
  },
];

function startScripted(): World {
  const world = startWorld();
  world.upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
    .on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token: 'r' }))
    .on('POST /v1/music', () => new Response('audio'))
    .on('POST /v1/upload', () => new Response('uploaded'));
  return world;
}

/** A body whose length fetch does not know beforehand; that of `new Blob().stream()` it would find out and declare. */
async function* inChunks(body: string): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(body);
  for (let start = 0; start < bytes.length; start += 100_000) yield bytes.subarray(start, start + 100_000);
}

/** The same bytes with a declared length, or in chunks without one. */
function sent(body: string, how: string): RequestOptions {
  return {
    method: 'POST',
    cookie: SIGNED_IN,
    headers: { 'content-type': 'application/json' },
    body: how === 'declared' ? body : inChunks(body),
  };
}

const LENGTHS = ['declared', 'chunked'];
const CASES = ROUTES.flatMap((route) =>
  LENGTHS.map((how): [string, string, Route] => [route.name, how, route]),
);

describe('a request body of exactly 2 MB', () => {
  it.each(CASES)('is accepted by %s, %s', async (_, how, { path, calls, body }) => {
    await using world = startScripted();
    const response = await world.request(path, sent(body.padEnd(LIMIT_BYTES), how));
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual([...calls]);
  });

  it.each(LENGTHS)('reaches the upstream whole, %s', async (how) => {
    await using world = startScripted();
    const body = 'x'.repeat(LIMIT_BYTES);
    await world.request('/api/upstream/v1/upload', sent(body, how));
    expect(world.upstream.last('POST /v1/upload').body === body).toBeTrue();
  });
});

describe('a request body of more than 2 MB', () => {
  it.each(CASES)('is refused by %s, %s', async (_, how, { path, body }) => {
    await using world = startScripted();
    const response = await world.request(path, sent(body.padEnd(LIMIT_BYTES + 1), how));
    expect(await envelopeMessage(response, 413)).toBe('The request body must not be larger than 2 MB.');
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(response.headers.get('access-control-allow-credentials')).toBe('true');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(CASES)('does not disturb the next request: %s, %s', async (_, how, { path, calls, body }) => {
    await using world = startScripted();
    const refused = await world.request(path, sent(body.padEnd(8 * LIMIT_BYTES), how));
    expect(refused.status).toBe(413);
    await refused.arrayBuffer();
    const next = await world.request(path, sent(body, how));
    expect(next.status).toBe(200);
    expect(world.upstream.calls).toEqual([...calls]);
  });

  it.each(ROUTES)('is refused by $name for its declared length alone', async ({ path }) => {
    await using world = startScripted();
    const answer = await rawRequest(
      world.port,
      `POST ${path} HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${LIMIT_BYTES + 1}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.body)).toEqual({
      error: { message: 'The request body must not be larger than 2 MB.' },
    });
    expect(answer.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(world.upstream.calls).toEqual([]);
  });

  it('is refused without a word on its size when there is no session', async () => {
    await using world = startScripted();
    const response = await world.request('/api/upstream/v1/upload', {
      method: 'POST',
      body: 'x'.repeat(LIMIT_BYTES + 1),
    });
    expect(await envelopeMessage(response, 401)).toBe('You are not signed in.');
    expect(world.upstream.calls).toEqual([]);
  });

  it('is not read at a sign-out, which needs no body', async () => {
    await using world = startWorld();
    const response = await world.request('/api/auth/logout', {
      method: 'POST',
      body: 'x'.repeat(LIMIT_BYTES + 1),
    });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ ok: true });
  });
});

const JSON_ROUTES = ROUTES.slice(0, 2);

describe.each(JSON_ROUTES)('the JSON body of $name', ({ path, calls, body: valid }) => {
  const post = (world: World, body: string | Uint8Array<ArrayBuffer>, contentType = 'application/json') =>
    world.request(path, {
      method: 'POST',
      cookie: SIGNED_IN,
      body,
      headers: { 'content-type': contentType },
    });

  it.each<[string, string | Uint8Array<ArrayBuffer>]>([
    ['nothing', ''],
    ['blank', '  \n'],
    ['cut short', valid.slice(0, -1)],
    ['followed by more', `${valid}{}`],
    ['64 opening brackets', '['.repeat(64)],
    ['a string without an end', `{"code":"${'['.repeat(2000)}`],
    ['not UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['overlong UTF-8', new Uint8Array([0x22, 0xc0, 0xaf, 0x22])],
    ['UTF-16', Uint8Array.from(Buffer.from(valid, 'utf16le'))],
    ['NaN', '{"music_length_ms":NaN}'],
    ['Infinity', '{"music_length_ms":-Infinity}'],
    ['a trailing comma', '{"code":"c",}'],
    ['single quotes', "{'code':'c'}"],
    ['a comment', `/* c */ ${valid}`],
    ['a control character in a string', '{"code":"\u0000"}'],
    ['a form', `code=c&code_verifier=${VERIFIER}`],
  ])('is refused as no JSON: %s', async (_, body) => {
    await using world = startScripted();
    const response = await post(world, body);
    expect(await envelopeMessage(response, 400)).toBe('The request body must be valid JSON.');
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it.each([
    ['null', 'null'],
    ['a flag', 'true'],
    ['a number', '1'],
    ['a text', '"text"'],
    ['an empty list', '[]'],
    ['a list', `[${valid}]`],
    ['an empty object', '{}'],
    ['64 lists in each other', `${'['.repeat(64)}${']'.repeat(64)}`],
    ['64 objects in each other', `${'{"a":'.repeat(64)}1${'}'.repeat(64)}`],
    ['1,000 objects', `[${Array.from({ length: 999 }, () => '{}')}]`],
  ])('is refused when it is %s', async (_, body) => {
    await using world = startScripted();
    const response = await post(world, body);
    expect(await envelopeMessage(response, 400)).toMatch(
      /^The request body must be a JSON object|^(code|model) must/,
    );
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it.each([
    ['65 levels', (fields: string) => `{"more":${'['.repeat(64)}${']'.repeat(64)},${fields}}`],
    ['1,001 brackets', (fields: string) => `{"more":[${Array.from({ length: 999 }, () => '{}')}],${fields}}`],
    ['1,001 commas', (fields: string) => `{"more":[${Array.from({ length: 1003 }, () => 1)}],${fields}}`],
    ['100,000 opening brackets', () => '['.repeat(100_000)],
  ])('is refused before it is parsed when it has %s', async (_, make) => {
    await using world = startScripted();
    const response = await post(world, make(valid.slice(1, -1)));
    expect(await envelopeMessage(response, 400)).toBe(
      'The request body has too many values or is nested too deeply.',
    );
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it.each([
    ['64 levels', `${'['.repeat(63)}${']'.repeat(63)}`],
    ['thousands of brackets and commas in a string', JSON.stringify('"[{,\\'.repeat(5000))],
  ])('is accepted with %s', async (_, more) => {
    await using world = startScripted();
    const response = await post(world, `{"more":${more},${valid.slice(1)}`);
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual([...calls]);
  });

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'APPLICATION/JSON',
    'application/json ; x=y',
  ])('is read when sent as %s', async (contentType) => {
    await using world = startScripted();
    const response = await post(world, valid, contentType);
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual([...calls]);
  });

  it.each([
    // Elysia has parsers of its own for the first three.
    'text/plain',
    'multipart/form-data; boundary=x',
    'application/octet-stream',
    'text/json',
    'application/jsonp',
    'application/ld+json',
    'application/json, text/plain',
    'application',
    'x',
  ])('is refused when sent as %s', async (contentType) => {
    await using world = startScripted();
    const response = await post(world, valid, contentType);
    expect(await envelopeMessage(response, 400)).toBe(
      'The request body must be a JSON object, sent as application/json.',
    );
    expect(world.upstream.calls).toEqual([]);
  });

  it('is refused when it has no content type', async () => {
    await using world = startScripted();
    const body = new Blob([valid]);
    const response = await world.request(path, { method: 'POST', cookie: SIGNED_IN, body });
    expect(await envelopeMessage(response, 400)).toBe(
      'The request body must be a JSON object, sent as application/json.',
    );
    expect(world.upstream.calls).toEqual([]);
  });

  it('may begin with a byte order mark', async () => {
    await using world = startScripted();
    const response = await post(world, `\ufeff${valid}`);
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual([...calls]);
  });

  it('may hold what it does not need, and other names for the prototype', async () => {
    await using world = startScripted();
    const odd = '"__proto__":{"is_public":true},"constructor":1,"toString":null,"":[],"nested":{"a":[{}]},';
    const response = await post(world, valid.replace('{', `{${odd}`));
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual([...calls]);
    // A flag of the prototype is not the user's.
    for (const { body } of world.upstream.received) expect(body).not.toContain('true');
  });
});

describe('names that come twice in a body', () => {
  it('count with their last value, for the check as for the upstream', async () => {
    await using world = startScripted();
    const body = '{"model":"first","model":"last","prompt":"p","music_length_ms":1,"music_length_ms":3000}';
    const response = await world.request('/api/music/generate', sent(body, 'declared'));
    expect(response.status).toBe(200);
    expect(JSON.parse(world.upstream.last('POST /v1/music').body)).toEqual({
      model: 'last',
      prompt: 'p',
      music_length_ms: 3000,
      force_instrumental: false,
      is_public: false,
    });
  });

  it('are refused when the last value is not valid', async () => {
    await using world = startScripted();
    const body = '{"model":"m","prompt":"p","music_length_ms":3000,"music_length_ms":1}';
    const response = await world.request('/api/music/generate', sent(body, 'declared'));
    expect(await envelopeMessage(response, 400)).toBe(
      'music_length_ms must be a whole number from 3000 to 600000.',
    );
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('a URL-encoded body', () => {
  it('is accepted by sign-in', async () => {
    await using world = startScripted();
    const response = await world.request('/api/auth/idp', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' },
      body: new URLSearchParams({ code: 'a +&=%é', code_verifier: VERIFIER }).toString(),
    });
    expect(response.status).toBe(200);
    const form = new URLSearchParams(world.upstream.last('POST /oauth/token').body);
    expect(form.get('code')).toBe('a +&=%é');
    expect(form.get('code_verifier')).toBe(VERIFIER);
  });

  it.each([
    ['empty', ''],
    ['broken escapes', 'code=%zz&code_verifier=%'],
    ['only separators', '&&&==='],
    ['the prototype', `__proto__=x&code=c&constructor=${VERIFIER}`],
  ])('is refused when it lacks what is needed: %s', async (_, body) => {
    await using world = startScripted();
    const response = await world.request('/api/auth/idp', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body,
    });
    expect(await envelopeMessage(response, 400)).toMatch(/^code(_verifier)? must be a string/);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(LENGTHS)('of more than 2 MB is refused, %s', async (how) => {
    await using world = startScripted();
    const response = await world.request('/api/auth/idp', {
      ...sent(`code=${'c'.repeat(LIMIT_BYTES)}`, how),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(await envelopeMessage(response, 413)).toBe('The request body must not be larger than 2 MB.');
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('a request that breaks off in its body', () => {
  const head = (path: string, framing: string) =>
    `POST ${path} HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\n` +
    `Content-Type: application/json\r\n${framing}\r\n\r\n`;

  it.each(
    ROUTES.flatMap(({ path }): [string, string, string][] => [
      [path, 'a declared length', 'Content-Length: 1000'],
      [path, 'chunks', 'Transfer-Encoding: chunked'],
    ]),
  )('is forgotten: %s with %s', async (path, _, framing) => {
    await using world = startScripted();
    const start = framing.startsWith('T') ? '8\r\n{"code":\r\n' : '{"code":';
    await sendAndLeave(world.port, head(path, framing) + start);
    const next = await world.request('/api/health', { origin: null });
    expect(next.status).toBe(200);
    await next.arrayBuffer();
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it.each([
    ['a chunk without a size', 'Transfer-Encoding: chunked', 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a chunk longer than its size', 'Transfer-Encoding: chunked', '1\r\n{"code":1}\r\n0\r\n\r\n'],
    ['a negative length', 'Content-Length: -1', '{}'],
    ['a length that is no number', 'Content-Length: 0x10', '{}'],
    ['a length beyond all numbers', 'Content-Length: 99999999999999999999', '{}'],
  ])('is refused by the server itself: %s', async (_, framing, body) => {
    await using world = startScripted();
    const path = '/api/upstream/v1/upload';
    const answer = await rawRequest(world.port, head(path, `${framing}\r\nConnection: close`) + body);
    expect(answer.status).toBe(400);
    expect(world.upstream.calls).toEqual([]);
    const next = await world.request('/api/health', { origin: null });
    expect(next.status).toBe(200);
  });
});

/** Resolves when the gateway has closed its side as well. */
function sendAndLeave(port: number, bytes: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      open(socket) {
        socket.write(bytes);
        socket.end();
      },
      data: () => {},
      close: () => resolve(),
      error: (_, error) => reject(error),
    },
  }).catch(reject);
  return promise;
}
