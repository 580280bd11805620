import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { GENERATE, PROXIED_PATH, PUBLIC, proxied } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY, ORIGIN, SIGNED_IN, startWorld } from '../../support/world.ts';

/** Every byte there is, more than once. */
const ALL_BYTES = Uint8Array.from({ length: 1024 }, (_, index) => index % 256);

async function* allBytesInChunks(): AsyncGenerator<Uint8Array> {
  yield ALL_BYTES.subarray(0, 100);
  yield ALL_BYTES.subarray(100);
}

describe('the body of a proxied request', () => {
  const world = sharedWorld();

  it.each([
    ['POST', 'application/json', '{ not JSON'],
    [
      'PUT',
      'multipart/form-data; boundary=x',
      '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n',
    ],
    ['PATCH', 'application/merge-patch+json', '{"is_public": true, "ümlaut": 1e400}'],
    ['DELETE', 'application/x-www-form-urlencoded', 'a=%zz&a'],
    ['POST', 'text/plain', ''],
  ])('is forwarded without being parsed: %s of %s', async (method, contentType, body) => {
    world.upstream.on(`${method} /v1/any`, () => new Response('done'));
    const headers = { 'content-type': contentType };
    const call = { method, cookie: SIGNED_IN, headers, body };
    const response = await world.request('/api/upstream/v1/any', call);
    expect(response.status).toBe(200);
    const received = world.upstream.last(`${method} /v1/any`);
    expect(received.body).toBe(body);
    expect(received.headers.get('content-type')).toBe(contentType);
  });

  it.each([
    ['declared', () => ALL_BYTES, null],
    ['chunked', allBytesInChunks, null],
    ['encoded', () => Bun.gzipSync(ALL_BYTES), 'gzip'],
  ])('keeps every byte, also when it is sent again after a refresh: %s', async (_, body, coding) => {
    const bodies: Uint8Array[] = [];
    await using upstream = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      routes: {
        '/v1/upload': async (request) => {
          bodies.push(await request.bytes());
          const status = bodies.length === 1 ? 401 : 201;
          return new Response(request.headers.get('content-encoding'), { status });
        },
        '/v1/auth/refresh': Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
      },
    });
    await using own = startWorld({ UPSTREAM_URL: upstream.url.href });
    const headers = { 'content-type': 'x/y', ...(coding && { 'content-encoding': coding }) };
    const call = { method: 'PUT', cookie: SIGNED_IN, headers, body: body() };
    const response = await own.request('/api/upstream/v1/upload', call);
    expect(response.status).toBe(201);
    expect(await response.text()).toBe(coding ?? '');
    const sent = coding ? Uint8Array.from(Bun.gzipSync(ALL_BYTES)) : ALL_BYTES;
    expect(bodies).toEqual([sent, sent]);
  });
});

describe('a GET or HEAD with a body', () => {
  const world = sharedWorld();
  const BODIES = [
    ['of known length', 'Content-Length: 5', 'hello'],
    ['in chunks', 'Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'],
    ['of no chunk', 'Transfer-Encoding: chunked', '0\r\n\r\n'],
  ] as const;
  const STARTS = [`GET ${PROXIED_PATH}`, `HEAD ${PROXIED_PATH}`, `GET ${PUBLIC.path}`];

  it.each(STARTS.flatMap((start) => BODIES.map((body) => [start, ...body] as const)))(
    'is refused, and the connection closed: %s %s',
    async (start, _, line, body) => {
      const response = await rawCall(world, start, { lines: [line], body });
      expect(response.status).toBe(400);
      if (!start.startsWith('HEAD')) {
        expect(JSON.parse(response.body)).toEqual({ error: { message: messages.en.bodyNotAllowed } });
      }
      expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
      expect(response.headers.get('connection')).toBe('close');
      expect(world.upstream.calls).toEqual([]);
      expect(world.admission.streams.inUse).toBe(0);
    },
  );

  it('is refused for the missing session first', async () => {
    const call = { cookie: '', lines: ['Content-Length: 5'], body: 'hello' };
    expect((await rawCall(world, `GET ${PROXIED_PATH}`, call)).status).toBe(401);
    expect(world.upstream.calls).toEqual([]);
  });

  it('is forwarded when its length is 0', async () => {
    world.upstream.on('GET /v1/library', () => new Response('done'));
    const response = await rawCall(world, `GET ${PROXIED_PATH}`, { lines: ['Content-Length: 0'] });
    expect(response.status).toBe(200);
    expect(response.body).toBe('done');
    expect(world.upstream.calls).toEqual(['GET /v1/library']);
  });
});

// The upstream may close a used connection at any moment, and Bun does not repeat these methods. That a call is not
// sent again when its connection is closed: every-route.test.ts.
describe('a call that must not be sent twice', () => {
  it.each([GENERATE, proxied('POST'), proxied('PATCH')])(
    'has a connection of its own: $name',
    async ({ path, options }) => {
      // The connections stay open, but a second call on one of them would get no response.
      await using upstream = await startRawUpstream((socket) =>
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
      );
      await using world = startWorld({ UPSTREAM_URL: upstream.url });
      for (const connections of [1, 2, 3]) {
        const response = await world.request(path, { ...options, cookie: ACCESS_ONLY });
        expect(await response.text()).toBe('ok');
        expect(upstream.connections).toBe(connections);
      }
    },
  );
});
