import { expect, it } from 'bun:test';
import { describeBehindProxies, openRequest } from '../../support/behind-proxies.ts';
import { releasedBody } from '../../support/released-body.ts';
import { itWith, program } from '../../support/requirements.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { CLIENT_ADDRESS_HEADER, prepareImpatientHaproxy, startTlsProxy } from '../../support/tls-proxies.ts';
import {
  envelopeMessage,
  ORIGIN,
  request,
  SIGNED_IN,
  startWorld,
  testSettings,
} from '../../support/world.ts';

const ORDER = { model: 'm', prompt: 'p', music_length_ms: 3000 };
/** With a letter before it, the longest token that fits a cookie. */
const LARGE = 'x'.repeat(4078);

describeBehindProxies('in front of a gateway', (behind, { program: name, file }) => {
  function send(path: string, options: Parameters<typeof request>[1] = {}): Promise<Response> {
    const { port, certificate } = behind().proxy;
    const url = `https://127.0.0.1:${port}${path}`;
    return request(url, { cookie: SIGNED_IN, tls: { ca: certificate }, ...options });
  }

  /** What openssl prints of a handshake. */
  async function handshake(...options: string[]): Promise<string> {
    const address = `127.0.0.1:${behind().proxy.port}`;
    const { output, errors } = await runToEnd(['openssl', 's_client', '-connect', address, ...options]);
    return output + errors;
  }

  it.each([
    ['generated track', 6, 'POST /v1/music', '/api/music/generate', { json: ORDER }],
    // nginx collects smaller pieces of what is not being generated.
    ['proxied body', 10_000, 'GET /v1/arriving', '/api/upstream/v1/arriving', {}],
  ])('passes the beginning of a %s of %i bytes on before the rest', async (_, size, call, path, options) => {
    const body = releasedBody();
    behind().world.upstream.on(call, () => new Response(body.stream));
    body.release('a'.repeat(size));
    const reader = (await send(path, options)).body?.getReader();
    let received = (await reader?.read())?.value?.byteLength ?? 0;
    expect(received).toBeGreaterThan(0);
    body.release('last');
    body.end();
    for (let piece = await reader?.read(); piece?.value; piece = await reader?.read()) {
      received += piece.value.byteLength;
    }
    expect(received).toBe(size + 'last'.length);
  });

  it("leaves a body that is too large to the gateway's own 413, with its CORS headers", async () => {
    const response = await send('/api/music/generate', { json: { ...ORDER, prompt: 'p'.repeat(3_000_000) } });
    await envelopeMessage(response, 413);
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  });

  it('carries two Secure cookies of full size, both ways', async () => {
    const pair = { access_token: `a${LARGE}`, refresh_token: `r${LARGE}`, expires_in: 900 };
    behind()
      .world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
      .on('POST /v1/auth/idp', () => Response.json(pair))
      .on('GET /v1/me', ({ headers }) => new Response(headers.get('authorization')));
    const signedIn = await send('/api/auth/idp', { json: { code: 'code', code_verifier: 'v'.repeat(43) } });
    const cookies = signedIn.headers.getSetCookie();
    expect(cookies.map((cookie) => / Secure(;|$)/.test(cookie))).toEqual([true, true]);
    const cookie = cookies.map((each) => each.split(';')[0]).join('; ');
    expect(await (await send('/api/auth/session', { cookie })).text()).toBe(`Bearer a${LARGE}`);
  });

  it("passes the request's id on, and the response's back", async () => {
    const { upstream } = behind().world;
    upstream.on('GET /v1/me', () => new Response());
    const response = await send('/api/auth/session', { headers: { 'x-request-id': 'support-ticket-17' } });
    expect(response.headers.get('x-request-id')).toBe('support-ticket-17');
    expect(upstream.last('GET /v1/me').headers.get('x-request-id')).toBe('support-ticket-17');
  });

  it.each([
    ['nothing else', []],
    ['its own header', ['X-Forwarded-For: 198.51.100.9']],
    ['it on two lines', ['X-Forwarded-For: 127.0.0.1', 'x-forwarded-for: 198.51.100.9, 127.0.0.1']],
    ['it empty', ['X-Forwarded-For:']],
    ['it for one hop', ['X-Forwarded-For: 198.51.100.9', 'Connection: close, X-Forwarded-For']],
    [
      'other headers',
      ['Forwarded: for=198.51.100.9', 'X-Real-IP: 198.51.100.9', 'Forwarded-For: 198.51.100.9'],
    ],
  ])('names the client to the upstream, when that sends %s', async (_, lines) => {
    const { world, proxy } = behind();
    const id = crypto.randomUUID();
    world.upstream.on('GET /v1/named', () => new Response());
    const headers = [`X-Request-Id: ${id}`, ...lines].join('\r\n');
    const client = openRequest(proxy, '127.0.0.12', 'GET /api/upstream/v1/named', headers).resume();
    expect(await world.line({ requestId: id })).toMatchObject({ status: 200 });
    client.destroy();
    const sent = world.upstream.last('GET /v1/named').headers;
    expect(sent.get('x-request-id')).toBe(id);
    expect(sent.get('x-forwarded-for')).toBe('127.0.0.12');
    expect(sent.get('forwarded')).toBe('for=127.0.0.12');
    expect(JSON.stringify([...sent])).not.toContain('198.51.100.9');
  });

  it('speaks HTTP/2, and TLS 1.2 at least, and asks browsers to stay with https', async () => {
    expect(await handshake('-alpn', 'h2,http/1.1')).toContain('ALPN protocol: h2');
    expect(await handshake('-tls1_2')).toContain('Protocol  : TLSv1.2');
    // At its usual level of security openssl itself would refuse, which proves nothing.
    expect(await handshake('-tls1_1', '-cipher', 'ALL@SECLEVEL=0')).toContain('protocol version');
    const { headers } = await send('/api/health');
    expect(headers.get('strict-transport-security')).toBe('max-age=31536000');
  });

  it('waits longer than the gateway does', async () => {
    const { timeouts } = testSettings({ UPSTREAM_URL: 'http://upstream.test', IDP_URL: 'http://idp.test' });
    const waits = /^\s*(?:proxy_(?:read|send)_timeout|timeout server) (\d+)s;?$/gm;
    const seconds = [...(await Bun.file(file).text()).matchAll(waits)].map(([, value]) => Number(value));
    expect(seconds.length).toBeGreaterThan(0);
    expect(Math.min(...seconds) * 1000).toBeGreaterThan(Math.max(...Object.values(timeouts)));
  });

  // HAProxy takes the client's address from the connection, and the machine may have only one IPv6 address.
  if (name !== 'nginx') return;

  it('names a client with an IPv6 address to the upstream', async () => {
    const { upstream } = behind().world;
    upstream.on('GET /v1/named', () => new Response());
    const headers = { [CLIENT_ADDRESS_HEADER]: '2001:DB8::7', 'x-forwarded-for': '198.51.100.9' };
    expect((await send('/api/upstream/v1/named', { headers })).status).toBe(200);
    const sent = upstream.last('GET /v1/named').headers;
    expect(sent.get('x-forwarded-for')).toBe('2001:db8::7');
    expect(sent.get('forwarded')).toBe('for="[2001:db8::7]"');
  });
});

itWith(
  [program('haproxy'), program('openssl')],
  'haproxy does not confuse a client that waits with one that stalls',
  async () => {
    await using world = startWorld();
    await using proxy = await startTlsProxy(prepareImpatientHaproxy, world.port);
    const generated = Promise.withResolvers<void>();
    world.upstream.on('POST /v1/music', () => generated.promise.then(() => new Response('track')));
    const url = `https://127.0.0.1:${proxy.port}/api/music/generate`;
    const generation = request(url, { cookie: SIGNED_IN, json: ORDER, tls: { ca: proxy.certificate } });
    await world.upstream.arrived('POST /v1/music');
    // A reader that stalls after the generation has begun to wait is cut off before the generation ends.
    const endless = () => new ReadableStream({ pull: (body) => body.enqueue(new Uint8Array(65_536)) });
    world.upstream.on('GET /v1/endless', () => new Response(endless()));
    const id = 'X-Request-Id: stalled';
    const stalled = openRequest(proxy, '127.0.0.1', 'GET /api/upstream/v1/endless', id).pause();
    expect(await world.line({ requestId: 'stalled' })).toMatchObject({ clientGone: 'streaming' });
    stalled.destroy();
    generated.resolve();
    expect(await (await generation).text()).toBe('track');
  },
);
