import { describe, expect, it } from 'bun:test';
import { type MessageKey, messages } from '../../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import * as ROUTES from '../../support/routes.ts';
import { accept, expectRefused, pair, REFRESH, reply } from '../../support/session-calls.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { type RequestOptions, SIGNED_IN, startWorld } from '../../support/world.ts';

const { GENERATE, PROXIED_PATH, PUBLIC, proxied, SIGN_IN_ROUTE } = ROUTES;

const LIMIT_BYTES = 2 * 1024 * 1024;
const FORM = 'application/x-www-form-urlencoded';
/** Every byte there is, more than once. */
const ALL_BYTES = Uint8Array.from({ length: 1024 }, (_, index) => index % 256);

const world = sharedWorld();
ROUTES.scriptRoutes(world);

/** A body whose length fetch does not know beforehand. */
async function* inChunks(body: string | Uint8Array): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(body);
  for (let start = 0; start < bytes.length; start += 100_000) yield bytes.subarray(start, start + 100_000);
}

function post(path: string, body: RequestOptions['body'], type = 'application/json'): Promise<Response> {
  const headers: Record<string, string> = type ? { 'content-type': type } : {};
  return world.request(path, { method: 'POST', cookie: SIGNED_IN, headers, body });
}

async function expectUnsent(response: Response, status: number, key: MessageKey): Promise<void> {
  await expectRefused(response, status, key);
  expect([world.upstream.calls, world.log]).toEqual([[], []]);
}

// How a body is bounded and parsed: unit/request-body.test.ts and unit/request-fields.test.ts.
describe.each([SIGN_IN_ROUTE, GENERATE, proxied('POST')])('a body for $name', ({ path, calls, options }) => {
  const body = JSON.stringify(options.json ?? {});

  it('is accepted with 2 MB, and refused with more', async () => {
    const largest = body.padEnd(LIMIT_BYTES);
    const declared = [`Content-Type: application/json`, `Content-Length: ${LIMIT_BYTES + 1}`];
    expect((await rawCall(world, `POST ${path}`, { lines: declared })).status).toBe(413);
    for (const framed of [(bytes: string) => bytes, inChunks]) {
      await expectUnsent(await post(path, framed(`${largest} `)), 413, 'bodyTooLarge');
      expect((await post(path, framed(largest))).status).toBe(200);
      expect(world.upstream.calls).toEqual([...calls]);
      if (path === PROXIED_PATH) expect(world.upstream.received[0]?.body === largest).toBeTrue();
      world.upstream.received.length = 0;
    }
  });

  if (path === PROXIED_PATH) return;
  it('is refused when it is not JSON with fields, and when there is none', async () => {
    await expectUnsent(await post(path, '{'), 400, 'bodyMalformed');
    for (const [sent, type] of [[`[${body}]`], [new Blob([body]), ''], [null, '']] as const)
      await expectUnsent(await post(path, sent, type), 400, 'bodyNotAnObject');
  });
});

it('a body is not read without a session, nor for a sign-out', async () => {
  const body = 'x'.repeat(LIMIT_BYTES + 1);
  for (const path of [GENERATE.path, PROXIED_PATH])
    await expectUnsent(await world.request(path, { method: 'POST', body }), 401, 'notSignedIn');
  const response = await world.request('/api/auth/logout', { method: 'POST', body });
  expect(await response.json()).toEqual({ ok: true });
});

it('the body of a sign-in may be a form', async () => {
  const form = 'code=a+%2B%26%3D%25%C3%A9&code_verifier='.padEnd(100, 'v');
  expect((await post(SIGN_IN_ROUTE.path, form, `${FORM};charset=UTF-8`)).status).toBe(200);
  expect(new URLSearchParams(world.upstream.last('POST /oauth/token').body).get('code')).toBe('a +&=%é');
});

it.each([
  ['POST', 'application/json', ALL_BYTES],
  ['PUT', 'multipart/form-data; boundary=x', ALL_BYTES],
  ['DELETE', FORM, new Uint8Array()],
])('the body of a proxied %s of %s keeps its bytes, also after a refresh', async (method, type, bytes) => {
  await using own = startWorld();
  const { upstream } = own;
  const call = `${method} /v1/library`;
  upstream.on(call, accept('access-2', reply(201))).on(REFRESH, reply(200, pair(2)));
  const headers = { 'content-type': type, 'content-encoding': 'gzip' };
  const body = method === 'PUT' ? inChunks(bytes) : bytes;
  expect((await own.request(PROXIED_PATH, { method, cookie: SIGNED_IN, headers, body })).status).toBe(201);
  expect(upstream.calls).toEqual([call, REFRESH, call]);
  for (const received of [upstream.received[0], upstream.last(call)]) {
    expect(received?.bytes).toEqual(bytes);
    expect(received?.headers.toJSON()).toMatchObject(headers);
  }
});

it.each([
  [`GET ${PROXIED_PATH}`, 'Content-Length: 5'],
  [`HEAD ${PROXIED_PATH}`, 'Content-Length: 5'],
  [`GET ${PUBLIC.path}`, 'Content-Length: 5'],
])('a GET or HEAD must not have a body: %s with %s', async (start, line) => {
  const { status, headers, body } = await rawCall(world, start, { lines: [line], body: '0\r\n\r\n' });
  expect([status, headers.get('connection'), world.upstream.calls]).toEqual([400, 'close', []]);
  if (!start.startsWith('HEAD')) expect(body).toContain(messages.en.bodyNotAllowed);
  expect(world.admission.streams.inUse).toBe(0);
});

// Proxies in front of HTTP/2 and HTTP/3 send chunks with nothing in them. Bun drops what else there is, unseen.
describe.each([proxied('GET'), proxied('HEAD'), PUBLIC])('$name with chunks', ({ path, calls, options }) => {
  it.each([
    ['without content', '0\r\n\r\n'],
    ['with a request for content', `41\r\n${'GET /api/health HTTP/1.1\r\n\r\n'.padEnd(0x41)}\r\n0\r\n\r\n`],
  ])('%s is served, and the upstream gets none', async (_, body) => {
    const start = `${options.method ?? 'GET'} ${path}`;
    const response = await rawCall(world, start, { lines: ['Transfer-Encoding: chunked'], body });
    expect([response.status, response.body]).toEqual([200, start.startsWith('HEAD') ? '' : 'ok']);
    const [received] = world.upstream.received;
    expect([world.upstream.calls, received?.body]).toEqual([[...calls], '']);
    expect(received?.headers.get('transfer-encoding')).toBeNull();
  });
});

// The upstream may close a used connection at any moment, and Bun does not repeat these methods.
it.each([GENERATE, proxied('POST'), proxied('PATCH')])(
  'a call that must not be sent twice has a connection of its own: $name',
  async ({ path, options }) => {
    const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    // The connections stay open, but a second call on one of them would get no response.
    await using upstream = await startRawUpstream((socket) => socket.write(ok));
    await using own = startWorld({ UPSTREAM_URL: upstream.url });
    for (const connections of [1, 2]) {
      const response = await own.request(path, options);
      expect([await response.text(), upstream.connections()]).toEqual(['ok', connections]);
    }
  },
);
