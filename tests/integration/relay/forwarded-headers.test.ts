import { describe, expect, it } from 'bun:test';
import {
  OWN,
  REQUEST_DROPPED,
  REQUEST_PASSES,
  RESPONSE_DROPPED,
  RESPONSE_PASSES,
} from '../../support/header-rules.ts';
import { PROXIED_PATH, PUBLIC, proxied } from '../../support/routes.ts';
import { rawCall, sharedWorld, startRawWorld } from '../../support/shared-world.ts';
import { ORIGIN } from '../../support/world.ts';

const ROUTES = [proxied('GET'), PUBLIC].map((route) => ({ ...route, call: route.calls.join() }));

/** The headers that a script may read. */
function exposed({ headers }: Response): string[] {
  return (headers.get('access-control-expose-headers') ?? '').toLowerCase().split(', ');
}

function linesOf(headers: Record<string, string>): string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

describe.each(ROUTES)('the request headers of $name', ({ path, call, credentials }) => {
  const world = sharedWorld();
  world.upstream.on(call, () => new Response());
  const send = async (lines: string[]) => {
    expect((await rawCall(world, `GET ${path}`, { lines })).status).toBe(200);
    return world.upstream.last(call).headers;
  };

  it.each([
    ['the client sends all of them', REQUEST_PASSES],
    ['the client sends none of them', {}],
  ])('carry what is listed unchanged, and nothing else, when %s', async (_, listed) => {
    const sent = await send([...linesOf(listed), ...REQUEST_DROPPED]);
    expect(Object.fromEntries(sent)).toEqual({
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

  it.each([['Accept-Encoding: gzip, br'], []])('ask for the plain bytes of a range: %s', async (...lines) => {
    const sent = await send(['Range: bytes=0-99, 200-', ...lines]);
    expect(sent.get('range')).toBe('bytes=0-99, 200-');
    expect(sent.get('accept-encoding')).toBe('identity');
  });

  it.each([
    ['a valid one', '1.1 edge.test, 1.0 fred (a comment)', true],
    ['one of 1 KB', `1.1 ${'e'.repeat(1020)}`, true],
    ['not a longer one', `1.1 ${'e'.repeat(1021)}`, false],
    ['not one with a control character', '1.1 edge\x7f', false],
    ['not one with a letter outside ASCII', '1.1 edg\xe9', false],
    ['not an empty one', '', false],
  ])('name the gateway in Via, behind the proxy in front: %s', async (_, via, isKept) => {
    const sent = await send([`Via: ${via}`]);
    expect(sent.get('via')).toBe(isKept ? `${via}, 1.1 music-gateway` : '1.1 music-gateway');
  });

  it('carry none that Connection names, in any case and on any line', async () => {
    const named = ['Connection: IF-MATCH,accept-language', 'Connection: ,range , via'];
    const lines = ['If-Match: "1"', 'Accept-Language: sw', 'Range: bytes=0-1', 'Via: 1.1 edge.test'];
    const sent = await send([...named, ...lines, 'If-None-Match: "two"']);
    for (const name of ['if-match', 'accept-language', 'range', 'accept-encoding']) {
      expect(sent.has(name), name).toBe(false);
    }
    expect(sent.get('via')).toBe('1.1 music-gateway');
    expect(sent.get('if-none-match')).toBe('"two"');
  });
});

describe.each(ROUTES)('the response headers of $name', ({ name: route, path, options, call }) => {
  const world = sharedWorld();
  const own = route === PUBLIC.name ? 'Origin' : 'Origin, Cookie';
  const get = (headers: Record<string, string>) => {
    world.upstream.on(call, () => new Response('body', { headers }));
    return world.request(path, options);
  };

  it('carry what is listed unchanged, and nothing else', async () => {
    const head = ['HTTP/1.1 200 Fine', 'Connection: close, X-Hop', 'Content-Length: 4', ...RESPONSE_DROPPED];
    const lines = [...head, ...linesOf(RESPONSE_PASSES)];
    await using raw = await startRawWorld(`${lines.join('\r\n')}\r\n\r\nbody`);
    const { status, headers, body } = await rawCall(raw, `GET ${path}`);
    expect(status).toBe(200);
    expect(body).toBe('body');
    expect(Object.fromEntries(headers)).toMatchObject({
      ...RESPONSE_PASSES,
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
      vary: own,
    });
    expect([...headers.keys()].toSorted()).toEqual([...OWN, ...Object.keys(RESPONSE_PASSES)].toSorted());
  });

  it('carry none that the upstream’s Connection names', async () => {
    const head = ['HTTP/1.1 200 OK', 'Connection: Close, ETAG', 'Connection: x-ratelimit-used , link'];
    const lines = [...head, 'ETag: "one"', 'X-RateLimit-Used: 3', 'Link: </v1/>', 'Expires: 0'];
    await using raw = await startRawWorld(`${lines.join('\r\n')}\r\nContent-Length: 4\r\n\r\nbody`);
    const { headers, body } = await rawCall(raw, `GET ${path}`);
    expect(body).toBe('body');
    for (const name of ['etag', 'x-ratelimit-used', 'link']) expect(headers.has(name), name).toBe(false);
    expect(headers.get('expires')).toBe('0');
    expect(headers.get('access-control-expose-headers')).not.toContain('x-ratelimit-used');
  });

  it.each([
    ['Accept-Language', `${own}, Accept-Language`],
    ['accept-encoding,ACCEPT-LANGUAGE', `${own}, accept-encoding, ACCEPT-LANGUAGE`],
    [`${own.toLowerCase()}, Accept, accept`, `${own}, Accept`],
    ['Accept, a b, "c", , d(e), x-y', `${own}, Accept, x-y`],
    [', "', own],
    ['', own],
    ['*', '*'],
    ['Accept, * ,x', '*'],
  ])('vary by what the upstream names, too: %j', async (vary, expected) => {
    const response = await get({ vary, 'cache-control': 'public, max-age=60' });
    expect(response.headers.get('vary')).toBe(expected);
    expect(response.headers.get('cache-control')).toBe('public, max-age=60');
    expect(await response.text()).toBe('body');
  });

  it('vary by what each line of the upstream names', async () => {
    const head = 'HTTP/1.1 200 OK\r\nVary: Accept\r\nContent-Length: 4\r\nvary: Accept-Language\r\n';
    await using raw = await startRawWorld(`${head}\r\nbody`);
    const { headers } = await rawCall(raw, `GET ${path}`);
    expect(headers.get('vary')).toBe(`${own}, Accept, Accept-Language`);
  });

  it('let scripts read every rate limit that they carry, listed or not', async () => {
    const health = await world.request('/api/health');
    expect(exposed(health)).toContain('x-ratelimit-limit');
    const listed = { 'X-RateLimit-Limit': '10', 'X-Rate-Limit': 'not of the family' };
    expect(exposed(await get(listed))).toEqual(exposed(health));
    const unlisted = {
      'ratelimit-resource': 'core',
      'x-ratelimit-limit-requests': '1',
      'x-ratelimit-used': '3',
    };
    const response = await get({ ...listed, ...unlisted });
    expect(exposed(response).toSorted()).toEqual([...exposed(health), ...Object.keys(unlisted)].toSorted());
    expect(Object.fromEntries(response.headers)).toMatchObject(unlisted);
  });
});

describe('the response headers of a proxied request', () => {
  it('to HEAD have the length that the upstream declares', async () => {
    const headers = { 'content-type': 'audio/mpeg', 'content-length': '123456', etag: '"abc"' };
    await using raw = await startRawWorld(`HTTP/1.1 200 OK\r\n${linesOf(headers).join('\r\n')}\r\n\r\n`);
    const response = await rawCall(raw, `HEAD ${PROXIED_PATH}`);
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject(headers);
    expect(response.body).toBe('');
  });
});
