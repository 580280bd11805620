import { describe, expect, it } from 'bun:test';
import { PROXIED_PATH, PUBLIC, proxied } from '../../support/routes.ts';
import { rawCall, sharedWorld, startRawWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY, ORIGIN } from '../../support/world.ts';

const ROUTES = [proxied('GET'), PUBLIC].map((route) => ({ ...route, call: route.calls.join() }));

/** The headers with these names, each with a value of its own. */
function named(names: string): Record<string, string> {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, `"the ${name}"; q=0.9, x`]));
}

function linesOf(headers: Record<string, string>): string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

const REQUEST_PASSES = {
  ...named(`accept accept-encoding accept-language cache-control content-encoding content-type idempotency-key
    if-match if-modified-since if-none-match if-range if-unmodified-since pragma`),
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
};
const REQUEST_DROPPED = linesOf({
  ...named(`authorization referer user-agent forwarded x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip
    x-original-url x-http-method-override x-random sec-fetch-site keep-alive proxy-authorization proxy-connection te
    trailer max-forwards http2-settings x-hop`),
  ...{ upgrade: 'h2c', connection: 'upgrade, x-hop' },
});
const RESPONSE_PASSES = {
  ...named(`accept-ranges age allow cache-control content-disposition content-language content-range content-type etag
    expires last-modified retry-after ratelimit ratelimit-limit x-ratelimit-limit x-ratelimit-limit-requests
    x-generation-id x-music-creation-id`),
  ...{
    location: 'https://cdn.test/a',
    'content-location': 'https://cdn.test/b',
    link: '<https://docs.test/>',
  },
};
const RESPONSE_DROPPED = linesOf({
  ...named(`set-cookie clear-site-data access-control-allow-origin access-control-allow-methods
    access-control-expose-headers access-control-allow-private-network cross-origin-resource-policy
    content-security-policy content-security-policy-report-only nel keep-alive proxy-authenticate refresh server
    service-worker-allowed sourcemap strict-transport-security trailer via x-content-type-options www-authenticate
    x-powered-by x-random x-rate-limit x-request-id x-hop`),
  connection: 'close, X-Hop',
});
/** What the gateway itself puts on every relayed response. */
const OWN = [
  ...['access-control-allow-credentials', 'access-control-allow-origin', 'access-control-expose-headers'],
  ...['content-length', 'content-security-policy', 'date', 'vary', 'x-content-type-options', 'x-request-id'],
];

/** The headers that a script may read. */
function exposed({ headers }: Response): string[] {
  return (headers.get('access-control-expose-headers') ?? '').toLowerCase().split(', ').toSorted();
}

describe.each(ROUTES)('the headers of $name', ({ name, path, call, credentials }) => {
  const world = sharedWorld();
  world.upstream.on(call, () => new Response());

  it.each([
    ['the client sends all of them', REQUEST_PASSES],
    ['the client sends none of them', {}],
  ])('pass to the upstream as they are listed, and no other, when %s', async (_, listed) => {
    const lines = [...linesOf(listed), ...REQUEST_DROPPED];
    expect((await rawCall(world, `GET ${path}`, { lines })).status).toBe(200);
    expect(Object.fromEntries(world.upstream.last(call).headers)).toEqual({
      accept: credentials === null ? '*/*' : 'application/json',
      traceparent: expect.any(String),
      ...listed,
      ...(credentials === null ? {} : { authorization: credentials }),
      connection: 'keep-alive',
      host: new URL(world.upstream.upstreamUrl).host,
      'user-agent': `Bun/${Bun.version}`,
      'x-request-id': expect.any(String),
      via: '1.1 music-gateway',
    });
  });

  it('pass to the client as they are listed, and no other', async () => {
    const head = ['HTTP/1.1 200 Fine', 'Content-Length: 4', 'Vary: Accept'];
    const lines = [...head, ...RESPONSE_DROPPED, ...linesOf(RESPONSE_PASSES)];
    await using raw = await startRawWorld(`${lines.join('\r\n')}\r\n\r\nbody`);
    const { status, headers, body } = await rawCall(raw, `GET ${path}`);
    expect([status, body]).toEqual([200, 'body']);
    expect(Object.fromEntries(headers)).toMatchObject({
      ...RESPONSE_PASSES,
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.not.stringContaining('the'),
      vary: name === PUBLIC.name ? 'Origin, Accept' : 'Origin, Cookie, Accept',
    });
    expect([...headers.keys()].toSorted()).toEqual([...OWN, ...Object.keys(RESPONSE_PASSES)].toSorted());
  });
});

describe('the request headers of the proxy', () => {
  const world = sharedWorld();
  world.upstream.on('GET /v1/library', () => new Response());
  const send = async (...lines: string[]) => {
    expect((await rawCall(world, `GET ${PROXIED_PATH}`, { lines })).status).toBe(200);
    return world.upstream.last('GET /v1/library').headers;
  };

  it('ask for the plain bytes of a range', async () => {
    for (const lines of [['Accept-Encoding: gzip, br'], []]) {
      const sent = await send('Range: bytes=0-99, 200-', ...lines);
      expect([sent.get('range'), sent.get('accept-encoding')]).toEqual(['bytes=0-99, 200-', 'identity']);
    }
  });

  it.each([
    ['a valid one', '1.1 edge.test, 1.0 fred (a comment)', true],
    ['one of 1 KB', `1.1 ${'e'.repeat(1020)}`, true],
    ['not a longer one', `1.1 ${'e'.repeat(1021)}`, false],
    ['not one with a control character', '1.1 edge\x7f', false],
    ['not one with a letter outside ASCII', '1.1 edg\xe9', false],
    ['not an empty one', '', false],
  ])('name the gateway in Via, behind the proxy in front: %s', async (_, via, isKept) => {
    const sent = await send(`Via: ${via}`);
    expect(sent.get('via')).toBe(isKept ? `${via}, 1.1 music-gateway` : '1.1 music-gateway');
  });

  it('are without those that Connection names, in any case and on any line', async () => {
    const named = ['Connection: IF-MATCH,accept-language', 'Connection: ,range , via'];
    const lines = ['If-Match: "1"', 'Accept-Language: sw', 'Range: bytes=0-1', 'Via: 1.1 edge.test'];
    const sent = await send(...named, ...lines, 'If-None-Match: "two"');
    const left = ['if-match', 'accept-language', 'range', 'accept-encoding'].filter((name) => sent.has(name));
    expect([left, sent.get('via'), sent.get('if-none-match')]).toEqual([[], '1.1 music-gateway', '"two"']);
  });
});

describe('the response headers of the proxy', () => {
  const world = sharedWorld();
  const get = (headers: Record<string, string>, status = 200) => {
    world.upstream.on('GET /v1/library', () => new Response('body', { status, headers }));
    return world.request(PROXIED_PATH, { cookie: ACCESS_ONLY });
  };

  it('are without those that Connection names', async () => {
    const head = 'HTTP/1.1 200 OK\r\nConnection: Close, ETAG\r\nConnection: x-ratelimit-used , link\r\n';
    const lines = 'ETag: "one"\r\nX-RateLimit-Used: 3\r\nLink: </v1/>\r\nExpires: 0\r\nVary: a\r\nvary: b';
    await using raw = await startRawWorld(`${head}${lines}\r\nContent-Length: 4\r\n\r\nbody`);
    const response = await raw.request(PROXIED_PATH, { cookie: ACCESS_ONLY });
    for (const name of ['etag', 'x-ratelimit-used', 'link']) expect(response.headers.has(name)).toBe(false);
    expect(response.headers.get('expires')).toBe('0');
    expect(exposed(response)).not.toContain('x-ratelimit-used');
    // Each line of a header counts.
    expect(response.headers.get('vary')).toBe('Origin, Cookie, a, b');
  });

  it.each([
    ['accept-encoding,ACCEPT-LANGUAGE', 'Origin, Cookie, accept-encoding, ACCEPT-LANGUAGE'],
    ['origin, cookie, Accept, accept', 'Origin, Cookie, Accept'],
    ['Accept, a b, "c", , d(e), x-y', 'Origin, Cookie, Accept, x-y'],
    [', "', 'Origin, Cookie'],
    ['', 'Origin, Cookie'],
    ['Accept, * ,x', '*'],
  ])('vary by what the upstream names, too: %j', async (vary, expected) => {
    expect((await get({ vary })).headers.get('vary')).toBe(expected);
  });

  it('let scripts read every rate limit that they carry, listed or not', async () => {
    const always = exposed(await world.request('/api/health'));
    expect(always).toContain('x-ratelimit-limit');
    expect(exposed(await get({ 'X-RateLimit-Limit': '10', 'X-Rate-Limit': 'no' }))).toEqual(always);
    const unlisted = { 'ratelimit-resource': 'core', 'x-ratelimit-used': '3' };
    expect(exposed(await get(unlisted))).toEqual([...always, ...Object.keys(unlisted)].toSorted());
  });

  // How addresses are mapped: unit/mapped-addresses.test.ts.
  it('name addresses of the gateway, and no redirect is followed', async () => {
    const address = `${world.upstream.upstreamUrl}/v1/x`;
    const given = { location: address, 'content-location': 'x', link: `<${address}>, <?page=2>` };
    for (const status of [201, 301, 302, 303, 307, 308]) {
      const response = await get(given, status);
      expect(response.status).toBe(status);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        location: '/api/upstream/v1/x',
        'content-location': '/api/upstream/v1/x',
        link: '</api/upstream/v1/x>, </api/upstream/v1/library?page=2>',
      });
    }
    const { headers } = await get({ location: '/admin', 'content-location': '/base', link: 'no link' });
    expect(Object.keys(given).filter((name) => headers.has(name))).toEqual([]);
  });

  it.each(['http://127.0.0.1', 'HTTP://127.1'])('know their upstream as %s', async (base) => {
    const moved = 'HTTP/1.1 302 Found\r\nLocation: /v1/elsewhere\r\nContent-Length: 0\r\n\r\n';
    await using raw = await startRawWorld(moved);
    const { port } = new URL(raw.upstreamUrl);
    await using spelt = await startRawWorld(moved, { UPSTREAM_URL: `${base}:${port}` });
    const response = await spelt.request(PROXIED_PATH, { cookie: ACCESS_ONLY });
    expect(response.headers.get('location')).toBe('/api/upstream/v1/elsewhere');
  });
});
