import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { connect } from '../support/proxy-client.ts';
import { releasedBody } from '../support/released-body.ts';
import { describeWith, itWith, program } from '../support/requirements.ts';
import {
  prepareImpatientHaproxy,
  startTlsProxy,
  TLS_PROXIES,
  type TlsProxy,
} from '../support/tls-proxies.ts';
import {
  envelopeMessage,
  ORIGIN,
  SIGNED_IN,
  startWorld,
  testSettings,
  type World,
} from '../support/world.ts';

const ORDER = { model: 'm', prompt: 'p', music_length_ms: 3000 };
/** With a letter before it, the longest token that fits a cookie. */
const LARGE = 'x'.repeat(4078);

describe.each([...TLS_PROXIES])('$program, as configured in deploy,', ({ program: name, file, prepare }) => {
  describeWith([program(name), program('openssl')], 'in front of a gateway', () => {
    let world: World;
    let proxy: TlsProxy;

    beforeAll(async () => {
      world = startWorld({ NODE_ENV: 'production' });
      proxy = await startTlsProxy(prepare, world.port);
    }, 60_000);

    afterAll(async () => {
      await proxy[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    });

    function request(path: string, init: BunFetchRequestInit = {}): Promise<Response> {
      const headers = new Headers({ origin: ORIGIN, cookie: SIGNED_IN, ...init.headers });
      const tls = { ca: proxy.certificate };
      return fetch(`https://127.0.0.1:${proxy.port}${path}`, { ...init, headers, tls });
    }

    function post(path: string, body: unknown): Promise<Response> {
      const headers = { 'content-type': 'application/json' };
      return request(path, { method: 'POST', headers, body: JSON.stringify(body) });
    }

    /** What a handshake ends in, as openssl prints it. */
    async function handshake(...options: string[]): Promise<string> {
      const address = `127.0.0.1:${proxy.port}`;
      const client = Bun.spawn(['openssl', 's_client', '-connect', address, ...options], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      return (await client.stdout.text()) + (await client.stderr.text());
    }

    it('passes the first bytes of a track on while the rest is still being generated', async () => {
      const body = releasedBody();
      world.upstream.on('POST /v1/music', () => new Response(body.stream));
      body.release('first ');
      const answer = await post('/api/music/generate', ORDER);
      const reader = answer.body?.getReader();
      expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('first ');
      body.release('last');
      body.end();
      expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('last');
    });

    it("lets the gateway's own 413 answer a body that is too large, with its CORS headers", async () => {
      const answer = await post('/api/music/generate', { ...ORDER, prompt: 'p'.repeat(3_000_000) });
      await envelopeMessage(answer, 413);
      expect(answer.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    });

    it('carries two Secure cookies of full size, both ways', async () => {
      const pair = { access_token: `a${LARGE}`, refresh_token: `r${LARGE}`, expires_in: 900 };
      world.upstream
        .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
        .on('POST /v1/auth/idp', () => Response.json(pair))
        .on('GET /v1/me', ({ headers }) => new Response(headers.get('authorization')));
      const signedIn = await post('/api/auth/idp', { code: 'code', code_verifier: 'v'.repeat(43) });
      const cookies = signedIn.headers.getSetCookie();
      expect(cookies.map((cookie) => / Secure(;|$)/.test(cookie))).toEqual([true, true]);
      const cookie = cookies.map((each) => each.split(';')[0]).join('; ');
      const session = await request('/api/auth/session', { headers: { cookie } });
      expect(await session.text()).toBe(`Bearer a${LARGE}`);
    });

    it("passes the request's id on, and the answer's back", async () => {
      world.upstream.on('GET /v1/me', () => new Response());
      const headers = { 'x-request-id': 'support-ticket-17' };
      const answer = await request('/api/auth/session', { headers });
      expect(answer.headers.get('x-request-id')).toBe('support-ticket-17');
      expect(world.upstream.last('GET /v1/me').headers.get('x-request-id')).toBe('support-ticket-17');
    });

    it('speaks HTTP/2, and TLS 1.2 at least, and asks browsers to stay with https', async () => {
      expect(await handshake('-alpn', 'h2,http/1.1')).toContain('ALPN protocol: h2');
      expect(await handshake('-tls1_2')).toContain('Protocol  : TLSv1.2');
      // What openssl itself no longer does at its usual level of security would prove nothing.
      expect(await handshake('-tls1_1', '-cipher', 'ALL@SECLEVEL=0')).toContain('protocol version');
      const { headers } = await request('/api/health');
      expect(headers.get('strict-transport-security')).toBe('max-age=31536000');
    });
  });

  it('waits longer than the gateway does', async () => {
    const { timeouts } = testSettings({ UPSTREAM_URL: 'http://upstream.test', IDP_URL: 'http://idp.test' });
    const waits = /^\s*(?:proxy_(?:read|send)_timeout|timeout server) (\d+)s;?$/gm;
    const seconds = [...(await Bun.file(file).text()).matchAll(waits)].map(([, value]) => Number(value));
    expect(seconds.length).toBeGreaterThan(0);
    expect(Math.min(...seconds) * 1000).toBeGreaterThan(Math.max(...Object.values(timeouts)));
  });
});

itWith(
  [program('haproxy'), program('openssl')],
  'haproxy does not take a client that waits for one that stalls',
  async () => {
    await using world = startWorld();
    await using proxy = await startTlsProxy(prepareImpatientHaproxy, world.port);
    const generated = Promise.withResolvers<void>();
    world.upstream.on('POST /v1/music', () => generated.promise.then(() => new Response('track')));
    const generation = fetch(`https://127.0.0.1:${proxy.port}/api/music/generate`, {
      method: 'POST',
      headers: { origin: ORIGIN, cookie: SIGNED_IN, 'content-type': 'application/json' },
      body: JSON.stringify(ORDER),
      tls: { ca: proxy.certificate },
    });
    await world.upstream.arrived('POST /v1/music');
    // A reader that stalls after the generation has begun to wait, and is cut off before that ends.
    const endless = () =>
      new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) });
    world.upstream.on('GET /v1/endless', () => new Response(endless()));
    const stalled = connect(proxy, '127.0.0.1', 'http/1.1');
    stalled.on('error', () => {}).pause();
    const head = `GET /api/upstream/v1/endless HTTP/1.1\r\nHost: test\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\n`;
    stalled.write(`${head}X-Request-Id: stalled\r\n\r\n`);
    expect(await world.line({ requestId: 'stalled' })).toMatchObject({ clientGone: 'streaming' });
    stalled.destroy();
    generated.resolve();
    expect(await (await generation).text()).toBe('track');
  },
);
