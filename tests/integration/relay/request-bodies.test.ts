import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import {
  GENERATE,
  PROXIED_PATH,
  PUBLIC,
  proxied,
  SIGN_IN_ROUTE,
  scriptRoutes,
} from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  ORIGIN,
  type RequestOptions,
  SIGNED_IN,
  startWorld,
} from '../../support/world.ts';

const LIMIT_BYTES = 2 * 1024 * 1024;
/** Every byte there is, more than once. */
const ALL_BYTES = Uint8Array.from({ length: 1024 }, (_, index) => index % 256);
/** The routes that read a body, each with one that it accepts. */
const ROUTES = [SIGN_IN_ROUTE, GENERATE, proxied('POST')].map(({ name, path, calls, options }) => ({
  name,
  path,
  calls: [...calls],
  body: JSON.stringify(options.json ?? { any: 'thing' }),
}));

const world = sharedWorld();
scriptRoutes(world);

/** A body whose length fetch does not know beforehand. */
async function* inChunks(body: string | Uint8Array): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(body);
  for (let start = 0; start < bytes.length; start += 100_000) yield bytes.subarray(start, start + 100_000);
}

function post(path: string, body: RequestOptions['body'], type = 'application/json'): Promise<Response> {
  return world.request(path, { method: 'POST', cookie: SIGNED_IN, headers: { 'content-type': type }, body });
}

async function expectRefused(response: Response, status: number, message: string): Promise<void> {
  expect(await envelopeMessage(response, status)).toBe(message);
  expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  expect(world.upstream.calls).toEqual([]);
}

// How a body is bounded and parsed: unit/request-body.test.ts and unit/request-fields.test.ts.
it.each(ROUTES)(
  'a body for $name is accepted with 2 MB, and refused with more',
  async ({ path, calls, body }) => {
    const largest = body.padEnd(LIMIT_BYTES);
    const declared = [`Content-Type: application/json`, `Content-Length: ${LIMIT_BYTES + 1}`];
    expect((await rawCall(world, `POST ${path}`, { lines: declared })).status).toBe(413);
    for (const framed of [(bytes: string) => bytes, inChunks]) {
      await expectRefused(await post(path, framed(`${largest} `)), 413, messages.en.bodyTooLarge);
      expect((await post(path, framed(largest))).status).toBe(200);
      expect(world.upstream.calls).toEqual(calls);
      if (path === PROXIED_PATH) expect(world.upstream.received[0]?.body === largest).toBeTrue();
      world.upstream.received.length = 0;
    }
  },
);

describe.each(ROUTES.slice(0, 2))('the JSON of $name', ({ path, calls, body }) => {
  const { bodyMalformed, bodyTooComplex, bodyNotAnObject } = messages.en;

  it.each([
    ['broken', '{', undefined, bodyMalformed],
    [
      'nested too deeply',
      `{"more":${'['.repeat(64)}${']'.repeat(64)},${body.slice(1)}`,
      undefined,
      bodyTooComplex,
    ],
    ['a list', `[${body}]`, undefined, bodyNotAnObject],
    ['of another type', body, 'text/plain', bodyNotAnObject],
  ])('is refused when it is %s, and the log does not warn', async (_, json, type, message) => {
    await expectRefused(await post(path, json, type), 400, message);
    expect(world.log).toEqual([]);
  });

  it('is refused without a content type, and so is a request without a body', async () => {
    for (const sent of [new Blob([body]), null]) {
      const response = await world.request(path, { method: 'POST', cookie: SIGNED_IN, body: sent });
      await expectRefused(response, 400, bodyNotAnObject);
    }
  });

  it('may hold other keys, of which nothing is sent', async () => {
    const response = await post(path, `{"__proto__":{"is_public":true},"price":0,${body.slice(1)}`);
    expect([response.status, world.upstream.calls]).toEqual([200, calls]);
    for (const received of world.upstream.received) expect(received.body).not.toMatch(/true|price/);
  });
});

describe('a request body', () => {
  it('is not read without a session, nor for a sign-out', async () => {
    const body = 'x'.repeat(LIMIT_BYTES + 1);
    for (const path of [GENERATE.path, PROXIED_PATH]) {
      const response = await world.request(path, { method: 'POST', body });
      await expectRefused(response, 401, messages.en.notSignedIn);
    }
    const response = await world.request('/api/auth/logout', { method: 'POST', body });
    expect(await response.json()).toEqual({ ok: true });
  });

  it('may be a form, for sign-in', async () => {
    const form = 'code=a+%2B%26%3D%25%C3%A9&code_verifier='.padEnd(100, 'v');
    const response = await post(SIGN_IN_ROUTE.path, form, 'application/x-www-form-urlencoded;charset=UTF-8');
    expect(response.status).toBe(200);
    const sent = new URLSearchParams(world.upstream.last('POST /oauth/token').body);
    expect(sent.get('code')).toBe('a +&=%é');
  });
});

describe('the body of a proxied request', () => {
  it.each([
    ['POST', 'application/json', '{ not JSON'],
    [
      'PUT',
      'multipart/form-data; boundary=x',
      '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--',
    ],
    ['PATCH', 'application/merge-patch+json', '{"is_public": true, "ümlaut": 1e400}'],
    ['DELETE', 'application/x-www-form-urlencoded', 'a=%zz&a'],
    ['POST', 'text/plain', ''],
  ])('is forwarded without being parsed: %s of %s', async (method, type, body) => {
    const call = { method, cookie: SIGNED_IN, headers: { 'content-type': type }, body };
    expect((await world.request(PROXIED_PATH, call)).status).toBe(200);
    const received = world.upstream.last(`${method} /v1/library`);
    expect([received.body, received.headers.get('content-type')]).toEqual([body, type]);
  });

  it.each([
    ['declared', () => ALL_BYTES],
    ['chunked', () => inChunks(ALL_BYTES)],
  ])('keeps every byte and its encoding, also when it is sent again after a refresh: %s', async (_, body) => {
    const bodies: (Uint8Array | string | null)[] = [];
    await using upstream = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      routes: {
        '/v1/upload': async (request) => {
          bodies.push(await request.bytes(), request.headers.get('content-encoding'));
          return new Response(null, { status: bodies.length === 2 ? 401 : 201 });
        },
        '/v1/auth/refresh': Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
      },
    });
    await using own = startWorld({ UPSTREAM_URL: upstream.url.href });
    const headers = { 'content-type': 'x/y', 'content-encoding': 'gzip' };
    const call = { method: 'PUT', cookie: SIGNED_IN, headers, body: body() };
    expect((await own.request('/api/upstream/v1/upload', call)).status).toBe(201);
    expect(bodies).toEqual([ALL_BYTES, 'gzip', ALL_BYTES, 'gzip']);
  });
});

describe('a GET or HEAD', () => {
  it.each([`GET ${PROXIED_PATH}`, `HEAD ${PROXIED_PATH}`, `GET ${PUBLIC.path}`])(
    'with a body is refused, and the connection closed: %s',
    async (start) => {
      for (const line of ['Content-Length: 5', 'Transfer-Encoding: chunked']) {
        const { status, headers, body } = await rawCall(world, start, { lines: [line], body: '0\r\n\r\n' });
        expect([status, headers.get('connection'), world.upstream.calls]).toEqual([400, 'close', []]);
        if (!start.startsWith('HEAD')) expect(body).toContain(messages.en.bodyNotAllowed);
      }
      expect(world.admission.streams.inUse).toBe(0);
    },
  );

  it('with a body is refused for the missing session first, and is forwarded with a length of 0', async () => {
    const stranger = { cookie: '', lines: ['Content-Length: 5'], body: 'hello' };
    expect((await rawCall(world, `GET ${PROXIED_PATH}`, stranger)).status).toBe(401);
    expect((await rawCall(world, `GET ${PROXIED_PATH}`, { lines: ['Content-Length: 0'] })).status).toBe(200);
    expect(world.upstream.calls).toEqual(['GET /v1/library']);
  });
});

// The upstream may close a used connection at any moment, and Bun does not repeat these methods.
it.each([GENERATE, proxied('POST'), proxied('PATCH')])(
  'a call that must not be sent twice has a connection of its own: $name',
  async ({ path, options }) => {
    // The connections stay open, but a second call on one of them would get no response.
    await using upstream = await startRawUpstream((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
    );
    await using own = startWorld({ UPSTREAM_URL: upstream.url });
    for (const connections of [1, 2]) {
      const response = await own.request(path, { ...options, cookie: ACCESS_ONLY });
      expect([await response.text(), upstream.connections]).toEqual(['ok', connections]);
    }
  },
);
