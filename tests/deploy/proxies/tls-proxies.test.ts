import { afterAll, beforeAll, expect, it } from 'bun:test';
import { once } from 'node:events';
import tls from 'node:tls';
import { cookieOf, requestOf } from '../../load/raw-client.ts';
import { releasedBody } from '../../support/released-body.ts';
import { describeWith, LINUX, program } from '../../support/requirements.ts';
import { ORIGIN, request, SIGNED_IN, startWorld, type World } from '../../support/world.ts';
import { CLIENT_ADDRESS_HEADER, startTlsProxy, TLS_PROXIES, type TlsProxy, TRUST } from './tls-proxies.ts';

const ORDER = { model: 'm', prompt: 'p', music_length_ms: 3000 };
/** With a letter before it, the longest token that fits a cookie. */
const LARGE = 'x'.repeat(4078);
/** One client may have this many in flight, in both configurations. */
const MAX_IN_FLIGHT = 100;
const TRACK_BYTES = 40_000_000;
/** The other headers that name a client are the gateway's matter. */
const LIES = {
  'X-Forwarded-For': '198.51.100.9',
  'x-forwarded-for': '',
  connection: 'close, X-Forwarded-For',
};
const SIGN_OUT = ['POST', '/api/auth/logout'] as const;

type Client = ReturnType<TlsProxy['openClient']>;

/** Repeats a request, fifty at once, until one gets 429. Returns all responses. */
async function untilRefused(client: Client, method: string, path: string, headers = {}) {
  const responses: Awaited<ReturnType<Client['request']>>[] = [];
  while (!responses.some(({ status }) => status === 429)) {
    const requests = Array.from({ length: 50 }, () => client.request(method, path, headers));
    responses.push(...(await Promise.all(requests)));
  }
  return responses;
}

for (const { program: name, prepare, hasty: changes } of TLS_PROXIES) {
  const isNginx = name === 'nginx';
  // On Linux all of 127.0.0.0/8 is this machine, so that clients can have addresses of their own.
  describeWith([program(name), LINUX], `${name}, as configured in deploy,`, () => {
    const stack = new AsyncDisposableStack();
    let world: World;
    let proxy: TlsProxy;
    let hasty: TlsProxy;
    beforeAll(async () => {
      const trusting = { FORWARD_CLIENT_ADDRESS: 'true', TRUSTED_PROXIES: '127.0.0.1' };
      world = stack.use(startWorld({ NODE_ENV: 'production', ...trusting }));
      proxy = stack.use(await startTlsProxy(prepare, world.port));
      hasty = stack.use(await startTlsProxy(prepare, world.port, changes));
    }, 60_000);
    afterAll(() => stack.disposeAsync());

    const send = (path: string, options: Parameters<typeof request>[1] = {}, to = proxy) =>
      request(to.url + path, { cookie: SIGNED_IN, tls: TRUST, ...options });
    const get = (path: string, requestId: string, headers = {}) =>
      requestOf(`GET ${path}`, { ...cookieOf('ada'), 'x-request-id': requestId, ...headers });

    it.each([
      ['generated track', 6, 'audio/wav', 'POST /v1/music', '/api/music/generate', { json: ORDER }],
      ['stream of events', 6, 'text/event-stream', 'GET /v1/events', '/api/upstream/v1/events', {}],
      // nginx collects smaller pieces of what is neither.
      ['proxied body', 10_000, 'text/plain', 'GET /v1/arriving', '/api/upstream/v1/arriving', {}],
    ])(
      'passes the beginning of a %s of %i bytes on before the rest',
      async (_, size, type, call, path, options) => {
        const body = releasedBody();
        world.upstream.on(call, () => new Response(body.stream, { headers: { 'content-type': type } }));
        body.release('a'.repeat(size));
        let received = 0;
        for await (const piece of (await send(path, options)).body ?? []) {
          if (received === 0) {
            body.release('last');
            body.end();
          }
          received += piece.byteLength;
        }
        expect(received).toBe(size + 'last'.length);
      },
    );

    it("leaves a body that is too large to the gateway's own 413, with its CORS headers", async () => {
      const json = { ...ORDER, prompt: 'p'.repeat(3_000_000) };
      const response = await send('/api/music/generate', { json });
      expect(response.status).toBe(413);
      expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    });

    it('carries two Secure cookies of full size, both ways', async () => {
      const pair = { access_token: `a${LARGE}`, refresh_token: `r${LARGE}`, expires_in: 900 };
      world.upstream
        .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
        .on('POST /v1/auth/idp', () => Response.json(pair))
        .on('GET /v1/me', ({ headers }) => new Response(headers.get('authorization')));
      const grant = { code: 'code', code_verifier: 'v'.repeat(43) };
      const cookies = (await send('/api/auth/idp', { json: grant })).headers.getSetCookie();
      expect(cookies.map((cookie) => / Secure(;|$)/.test(cookie))).toEqual([true, true]);
      const cookie = cookies.map((each) => each.split(';')[0]).join('; ');
      expect(await (await send('/api/auth/session', { cookie })).text()).toBe(`Bearer a${LARGE}`);
    });

    it("names the client to the upstream, whatever that says of itself, and passes the request's id", async () => {
      const id = crypto.randomUUID();
      world.upstream.on('GET /v1/named', () => new Response());
      const client = proxy.send('127.0.0.12', get('/api/upstream/v1/named', id, LIES));
      const [head] = await once(client, 'data');
      client.destroy();
      expect(String(head)).toMatch(new RegExp(`^HTTP/1.1 200 .*\r\nx-request-id: ${id}\r\n`, 'is'));
      const { headers } = world.upstream.last('GET /v1/named');
      expect(Object.fromEntries(headers)).toMatchObject({
        'x-request-id': id,
        'x-forwarded-for': '127.0.0.12',
        forwarded: 'for=127.0.0.12',
      });
      expect(JSON.stringify([...headers])).not.toContain('198.51.100.9');
    });

    it('speaks HTTP/2, and TLS 1.2 at least, and asks browsers to stay with https', async () => {
      const handshake = (options: tls.ConnectionOptions) => {
        const socket = tls.connect({ host: '127.0.0.1', port: proxy.port, ...TRUST, ...options });
        const agreed = () => [socket.getProtocol(), socket.alpnProtocol];
        const outcome = once(socket, 'secureConnect').then(agreed, String);
        return outcome.finally(() => socket.destroy());
      };
      expect(await handshake({ ALPNProtocols: ['h2', 'http/1.1'] })).toEqual(['TLSv1.3', 'h2']);
      expect(await handshake({ maxVersion: 'TLSv1.2' })).toEqual(['TLSv1.2', false]);
      const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' } as const;
      expect(await handshake(old)).toContain('ALERT_PROTOCOL_VERSION');
      const { headers } = await send('/api/health');
      expect(headers.get('strict-transport-security')).toBe('max-age=31536000');
    });

    it.each([
      ['GET', '/v1/library'],
      ['HEAD', '/v1/library'],
      ['GET', '/v1/music/public/abc/content'],
    ])(
      'passes a %s of %s over HTTP/2, which ends with its headers or with an empty frame',
      async (method, path) => {
        world.upstream.on(`${method} ${path}`, () => new Response());
        using client = proxy.openClient('127.0.0.13');
        const request = (options?: { endStream: boolean }) =>
          client.request(method, `/api/upstream${path}`, { cookie: SIGNED_IN }, options);
        expect((await request()).status).toBe(200);
        // Of the empty frame HAProxy makes chunks without content.
        expect((await request({ endStream: false })).status).toBe(200);
      },
    );

    it('refuses a method that the gateway does not know', async () => {
      using client = proxy.openClient('127.0.0.2');
      const headers = { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' };
      expect(await client.request('FOO', '/api/health')).toMatchObject({ status: 405, headers });
    });

    it('refuses one address that asks too often, in a way that a page can read, and serves another', async () => {
      using client = proxy.openClient('127.0.0.3');
      using other = proxy.openClient('127.0.0.4');
      const responses = await untilRefused(client, 'GET', '/api/health');
      const refused = responses.filter(({ status }) => status !== 200);
      expect(responses.length - refused.length).toBeGreaterThanOrEqual(500);
      const headers = { 'retry-after': '10', 'access-control-allow-origin': ORIGIN };
      for (const response of refused) expect(response).toMatchObject({ status: 429, headers });
      expect((await other.request('GET', '/api/health')).status).toBe(200);
    });

    it('limits sign-ins and sign-outs apart from the rest, however their path is written', async () => {
      using client = proxy.openClient('127.0.0.5');
      using other = proxy.openClient('127.0.0.6');
      const statuses = (await untilRefused(client, ...SIGN_OUT)).map(({ status }) => status);
      expect(new Set(statuses)).toEqual(new Set([200, 429]));
      expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(30);
      const spellings = ['/api/auth/idp', '/api/x/../auth/logout', '/api/auth/log%6fut', '/api/auth\\logout'];
      for (const path of spellings) expect((await client.request('POST', path)).status).toBeOneOf([404, 429]);
      expect((await client.request('OPTIONS', '/api/auth/logout')).status).toBe(204);
      expect((await client.request('GET', '/api/auth/session')).status).toBe(200);
      expect((await other.request(...SIGN_OUT)).status).toBe(200);
    });

    it('counts the requests of one address that are in flight on all its connections', async () => {
      using one = proxy.openClient('127.0.0.7');
      using two = proxy.openClient('127.0.0.7');
      using other = proxy.openClient('127.0.0.8');
      const released = Promise.withResolvers<void>();
      world.upstream.on('GET /v1/me', () => released.promise.then(() => new Response()));
      world.upstream.received.length = 0;
      // Each of another user: the gateway has a limit for each session.
      const check = (_: unknown, user: number) => {
        const cookie = `svc_music_access=user-${user}`;
        return (user % 2 ? one : two).request('GET', '/api/auth/session', { cookie });
      };
      const checks = Array.from({ length: MAX_IN_FLIGHT }, check);
      await world.upstream.arrived('GET /v1/me', MAX_IN_FLIGHT);
      expect((await check(undefined, MAX_IN_FLIGHT)).status).toBe(429);
      expect((await other.request('GET', '/api/health')).status).toBe(200);
      released.resolve();
      const statuses = (await Promise.all(checks)).map(({ status }) => status);
      expect(statuses).toEqual(Array(MAX_IN_FLIGHT).fill(200));
    });

    it('ends a request whose body stalls, and the gateway sees nothing of it', async () => {
      const head = { 'x-request-id': 'slow-body', 'content-length': 100 };
      const client = hasty.send('127.0.0.9', requestOf('POST /api/auth/logout', head, '{')).resume();
      await new Promise((resolve) => client.on('close', resolve));
      await world.roundTrip();
      expect(world.lines.filter(({ requestId }) => requestId === 'slow-body')).toEqual([]);
    });

    it('does not confuse a client that waits with one that stalls', async () => {
      const generated = Promise.withResolvers<void>();
      const endless = () => new ReadableStream({ pull: (body) => body.enqueue(new Uint8Array(65_536)) });
      world.upstream
        .on('POST /v1/music', () => generated.promise.then(() => new Response('track')))
        .on('GET /v1/endless', () => new Response(endless()));
      world.upstream.received.length = 0;
      const generation = send('/api/music/generate', { json: ORDER }, hasty);
      await world.upstream.arrived('POST /v1/music');
      // A reader that stalls after the generation has begun to wait is cut off before the generation ends.
      const stalled = hasty.send('127.0.0.1', get('/api/upstream/v1/endless', 'stalled')).pause();
      expect(await world.line({ requestId: 'stalled' })).toMatchObject({ clientGone: 'streaming' });
      stalled.destroy();
      generated.resolve();
      expect(await (await generation).text()).toBe('track');
    });

    // HAProxy takes the client's address from the connection, and keeps no file for slow readers.
    if (isNginx) {
      it('names an IPv6 address to the upstream, and takes a network of 64 bits for one client', async () => {
        using client = proxy.openClient('127.0.0.10');
        const from = (address: string) => ({ [CLIENT_ADDRESS_HEADER]: address });
        world.upstream.on('GET /v1/named', () => new Response());
        const headers = { cookie: SIGNED_IN, ...from('2001:DB8::7') };
        await client.request('GET', '/api/upstream/v1/named', headers);
        expect(Object.fromEntries(world.upstream.last('GET /v1/named').headers)).toMatchObject({
          'x-forwarded-for': '2001:db8::7',
          forwarded: 'for="[2001:db8::7]"',
        });
        await untilRefused(client, ...SIGN_OUT, from('2001:db8:1:2::5'));
        expect((await client.request(...SIGN_OUT, from('2001:db8:1:2:ffff::9'))).status).toBe(429);
        expect((await client.request(...SIGN_OUT, from('2001:db8:1:3::5'))).status).toBe(200);
      });

      it('reads a whole track from the gateway for a slow reader', async () => {
        world.upstream.on('GET /v1/track', () => new Response(new Uint8Array(TRACK_BYTES)));
        const client = proxy.send('127.0.0.11', get('/api/upstream/v1/track', 'slow-reader'));
        await once(client, 'data');
        client.pause();
        const line = await world.line({ requestId: 'slow-reader' });
        expect(line).toMatchObject({ status: 200, bytes: TRACK_BYTES });
        expect(client.bytesRead).toBeLessThan(TRACK_BYTES / 6);
        client.destroy();
      });
    }
  });
}
