import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import {
  GENERATE,
  PROXIED_PATH,
  proxied,
  SIGN_IN,
  SIGN_IN_ROUTE,
  scriptRoutes,
} from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, ORIGIN, SIGNED_IN } from '../../support/world.ts';

const LIMIT_BYTES = 2 * 1024 * 1024;
const FORM = 'application/x-www-form-urlencoded; charset=UTF-8';
const LENGTHS = ['declared', 'chunked'];
/** The routes that read a body, each with one that it accepts. */
const ROUTES = [SIGN_IN_ROUTE, GENERATE, proxied('POST')].map(({ name, path, calls, options }) => ({
  name,
  path,
  calls: [...calls],
  body: JSON.stringify(options.json ?? { any: 'thing' }),
}));
const CASES = ROUTES.flatMap((route) => LENGTHS.map((how) => ({ how, ...route })));

const world = sharedWorld();
scriptRoutes(world);

/** A body whose length fetch does not know beforehand: it would find out that of `new Blob().stream()`. */
async function* inChunks(body: string): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(body);
  for (let start = 0; start < bytes.length; start += 100_000) yield bytes.subarray(start, start + 100_000);
}

/** The same bytes with a declared length, or in chunks without one. */
function post(path: string, body: string, how = 'declared', contentType = 'application/json') {
  const sent = how === 'declared' ? body : inChunks(body);
  const headers = { 'content-type': contentType };
  return world.request(path, { method: 'POST', cookie: SIGNED_IN, headers, body: sent });
}

async function expectTooLarge(response: Response): Promise<void> {
  expect(await envelopeMessage(response, 413)).toBe(messages.en.bodyTooLarge);
  expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  expect(response.headers.getSetCookie()).toEqual([]);
  expect(world.upstream.calls).toEqual([]);
}

describe.each(CASES)('a $how body for $name', ({ how, path, calls, body }) => {
  it('is accepted with exactly 2 MB', async () => {
    const response = await post(path, body.padEnd(LIMIT_BYTES), how);
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual(calls);
    if (path === PROXIED_PATH) {
      expect(world.upstream.received[0]?.body === body.padEnd(LIMIT_BYTES)).toBeTrue();
    }
  });

  it.each([LIMIT_BYTES + 1, 8 * LIMIT_BYTES])('of %d bytes is refused, unlike the next', async (bytes) => {
    await expectTooLarge(await post(path, body.padEnd(bytes), how));
    const next = await post(path, body, how);
    expect(next.status).toBe(200);
    expect(world.upstream.calls).toEqual(calls);
  });
});

describe.each(ROUTES)('a body for $name', ({ path }) => {
  it('of more than 2 MB is refused for its declared length alone', async () => {
    const lines = ['Content-Type: application/json', `Content-Length: ${LIMIT_BYTES + 1}`];
    const response = await rawCall(world, `POST ${path}`, { lines });
    expect(response.status).toBe(413);
    expect(JSON.parse(response.body)).toEqual({ error: { message: messages.en.bodyTooLarge } });
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['declared', 'Content-Length: 1000', '{"code":'],
    ['chunked', 'Transfer-Encoding: chunked', '8\r\n{"code":\r\n'],
  ])('that breaks off is forgotten: %s', async (_, framing, start) => {
    const head = `Host: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\nContent-Type: application/json`;
    await sendAndLeave(world.port, `POST ${path} HTTP/1.1\r\n${head}\r\n${framing}\r\n\r\n${start}`);
    const next = await world.request('/api/health', { origin: null });
    expect(next.status).toBe(200);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });
});

describe('a request body', () => {
  it('of more than 2 MB is refused for the missing session first, without being read', async () => {
    for (const path of [GENERATE.path, PROXIED_PATH]) {
      const response = await world.request(path, { method: 'POST', body: 'x'.repeat(LIMIT_BYTES + 1) });
      expect(await envelopeMessage(response, 401)).toBe(messages.en.notSignedIn);
    }
    expect(world.upstream.calls).toEqual([]);
  });

  it('of a sign-out is not read', async () => {
    const call = { method: 'POST', body: 'x'.repeat(LIMIT_BYTES + 1) };
    const response = await world.request('/api/auth/logout', call);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ ok: true });
  });

  it.each([
    ['a chunk without a size', 'Transfer-Encoding: chunked', 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a negative length', 'Content-Length: -1', '{}'],
    [
      'chunks and a length',
      'Transfer-Encoding: chunked\r\nContent-Length: 5',
      '0\r\n\r\nGET /x HTTP/1.1\r\n\r\n',
    ],
    ['two lengths', 'Content-Length: 5\r\nContent-Length: 6', '0\r\n\r\nGET /x HTTP/1.1\r\n\r\n'],
  ])('is refused by the server itself with %s', async (_, framing, body) => {
    const response = await rawCall(world, `POST ${PROXIED_PATH}`, { lines: [framing], body });
    expect(response.status).toBe(400);
    expect(world.upstream.calls).toEqual([]);
  });

  it('of far too many pieces is refused, unless they were joined on the way', async () => {
    world.upstream.on('POST /v1/pieces', ({ body }) => new Response(String(body.length)));
    const pieces = (async function* () {
      for (let count = 0; count < 40_000; count++) {
        yield Buffer.from('a');
        if (count % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const call = { method: 'POST', cookie: SIGNED_IN, body: pieces };
    const response = await world.request('/api/upstream/v1/pieces', call);
    if (response.status === 200) expect(await response.text()).toBe('40000');
    else await envelopeMessage(response, 413);
  });
});

describe('a URL-encoded body', () => {
  it('is accepted by sign-in', async () => {
    const form = new URLSearchParams({ ...SIGN_IN, code: 'a +&=%é' });
    const response = await post(SIGN_IN_ROUTE.path, form.toString(), 'declared', FORM);
    expect(response.status).toBe(200);
    const sent = new URLSearchParams(world.upstream.last('POST /oauth/token').body);
    expect(sent.get('code')).toBe('a +&=%é');
    expect(sent.get('code_verifier')).toBe(SIGN_IN.code_verifier);
  });

  it.each([
    ['nothing', ''],
    ['broken escapes', 'code=%zz&code_verifier=%'],
    ['only separators', '&&&==='],
    ['the prototype', `__proto__=x&code=c&constructor=${SIGN_IN.code_verifier}`],
  ])('is refused when it has %s instead of the fields', async (_, body) => {
    const response = await post(SIGN_IN_ROUTE.path, body, 'declared', FORM);
    expect(await envelopeMessage(response, 400)).toMatch(/^code(_verifier)? must be a string/);
    expect(world.upstream.calls).toEqual([]);
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
