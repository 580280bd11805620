import { describe, expect, it } from 'bun:test';
import { rawRequest } from '../support/raw-http.ts';
import { ORIGIN, SIGNED_IN, startWorld, type World } from '../support/world.ts';

/** A gateway in front of an upstream that notes each request line byte for byte, whatever it asks for. */
function startRecorded(): { world: World; requestLines: string[] } & AsyncDisposable {
  const requestLines: string[] = [];
  const upstream = Bun.listen<string>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = '';
      },
      data(socket, chunk) {
        socket.data += chunk.toString('latin1');
        if (!socket.data.includes('\r\n\r\n')) return;
        requestLines.push(socket.data.slice(0, socket.data.indexOf('\r\n')));
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfound');
      },
    },
  });
  const world = startWorld({ UPSTREAM_URL: `http://127.0.0.1:${upstream.port}/base` });
  return {
    world,
    requestLines,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      upstream.stop(true);
    },
  };
}

function rawGet(
  world: World,
  target: string,
  { host = 'Host: gateway.test\r\n', version = 'HTTP/1.1' } = {},
) {
  return rawRequest(
    world.port,
    `GET ${target} ${version}\r\n${host}Origin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\nConnection: close\r\n\r\n`,
  );
}

/** Below `/api/upstream`. */
const NOWHERE = [
  // Dot segments, which the server resolves before the gateway sees them.
  '/v1/..',
  '/v1/../',
  '/v1/../admin',
  '/v1/../../admin',
  '/v1/../../../../../../etc/passwd',
  '/v1/a/../../admin',
  '/v1/a/b/../../../admin',
  '/v1/./../admin',
  '/v1//../../admin',
  '/v1/../v2/me',
  '/v1/..?/v1/',
  '/../v1/me',
  '/..',
  // The same, encoded.
  '/v1/%2e%2e/admin',
  '/v1/%2E%2E/admin',
  '/v1/.%2e/admin',
  '/v1/%2e./admin',
  '/v1/%2e%2e',
  '/v1/%2e%2e%2fadmin',
  '/v1/a/%2e%2e/%2e%2e/admin',
  '/%2e%2e/v1/me',
  // Encoded more than once.
  '/v1/%252e%252e/admin',
  '/v1/%252e%252e%252fadmin',
  '/v1/.%252e/admin',
  '/v1/%25252e%25252e/admin',
  '/v1/%2525252e%2525252e/admin',
  '/v1/%252525252e%252525252e/admin',
  '/v1/%25%32%65%25%32%65/admin',
  '/v1/%%32%65%%32%65/admin',
  '/v1/x%252fy',
  '/v1/x%25252fy',
  '/v1/x%255cy',
  '/v1/x%2500y',
  '/v1/x%250d%250ay',
  '/v1/x%25252525252525y',
  // Path parameters.
  '/v1/..;/admin',
  '/v1/..;x=1/admin',
  '/v1/..;x=1;y=2/admin',
  '/v1/..%3b/admin',
  '/v1/..%253b/admin',
  '/v1/%2e%2e;/admin',
  '/v1/%252e%252e%253bx/admin',
  '/v1/.;/admin',
  '/v1/a/..;',
  '/v1/;',
  '/v1/a/;x/b',
  '/v1/a/%3bx',
  // Endpoints that respond with tokens, as a servlet container or another server finds them.
  '/v1/auth/refresh',
  '/v1/auth;x/refresh',
  '/v1/;/auth/refresh',
  '/v1/;x/auth/refresh',
  '/v1//;/auth/refresh',
  '/v1/;/;x=1/auth;y//refresh',
  '/v1;x/auth/refresh',
  '/v1//auth/refresh',
  '/v1/%20/auth/refresh',
  '/v1/auth%20/refresh',
  '/v1/auth./refresh',
  '/v1/.../auth/refresh',
  '/v1/%EF%BD%81%EF%BD%95%EF%BD%94%EF%BD%88/refresh',
  // Dots and slashes of full width.
  '/v1/%EF%BC%8E%EF%BC%8E/a',
  '/v1/%EF%BC%8E%EF%BC%8E%EF%BC%8Fauth/refresh',
  '/v1/x%EF%BC%8F../auth/refresh',
  // Encoded slashes and backslashes.
  '/v1/..%2fadmin',
  '/v1/..%2Fadmin',
  '/v1%2f..%2fadmin',
  '/v1/a%2fb',
  '/v1/%2f%2fevil.test',
  '/v1/..%5cadmin',
  '/v1/..%5Cadmin',
  '/v1/a%5cb',
  '%2fv1%2fme',
  '%5cv1%5cme',
  '/v1\\..\\admin',
  '/v1/..\\admin',
  '/v1\\..\\..\\..\\admin',
  '\\..\\admin',
  // Overlong and broken UTF-8.
  '/v1/%c0%ae%c0%ae/admin',
  '/v1/..%c0%afadmin',
  '/v1/..%C0%AFadmin',
  '/v1/%e0%80%ae%e0%80%ae/admin',
  '/v1/..%e0%80%afadmin',
  '/v1/..%f0%80%80%afadmin',
  '/v1/..%c1%9cadmin',
  '/v1/..%c0%9vadmin',
  '/v1/a%80b',
  '/v1/a%ffb',
  '/v1/a%ed%a0%80b',
  // Broken escapes.
  '/v1/%',
  '/v1/%2',
  '/v1/%zz',
  '/v1/%2 e',
  '/v1/..%u2215admin',
  '/v1/%u002e%u002e/admin',
  '/v1/a%2',
  '/v1/100%',
  // Control characters.
  '/v1/a%00',
  '/v1/a%00b',
  '/v1/..%00/admin',
  '/v1/a%09b',
  '/v1/a%0a',
  '/v1/a%0d',
  '/v1/a%0d%0aX-Injected:%201',
  '/v1/me%20HTTP/1.1%0d%0aHost:%20evil.test%0d%0a%0d%0a',
  '/v1/a%1fb',
  '/v1/a%7fb',
  '/v1/a\x7fb',
  '/v1/a\x00b',
  '/v1/a\x01b',
  '/v1/a\tb',
  '/v1/a\x1fb',
  '/v1/a b',
  '/v1/me\tHTTP/1.1\t/admin',
  // Fragments.
  '/v1/a#b',
  '/v1/#/../admin',
  '/v1/a?b#c',
  '#/v1/me',
  '/#/v1/me',
  // Not below /v1/.
  '',
  '/',
  '/v1',
  '/V1/me',
  '/v%31/me',
  '/%76%31/me',
  '/v1%2fme',
  '/v1%20/me',
  '/v2/me',
  '/v10/me',
  '/.v1/me',
  '/v1./me',
  '/v1;/me',
  '/;/v1/me',
  '//v1/me',
  '///v1/me',
  '//evil.test/v1/me',
  '///evil.test/v1/me',
  '/\\evil.test/v1/me',
  '?/v1/me',
  '/?/v1/me',
  '/http://evil.test/v1/me',
  // User names, ports and longer host names, were the target put straight behind a base address.
  '@evil.test/v1/me',
  '/@evil.test/v1/me',
  ':secret@evil.test/v1/me',
  ':80/v1/me',
  '.evil.test/v1/me',
  '%40evil.test/v1/me',
  '\\@evil.test/v1/me',
];

/** Whole targets. */
const NOWHERE_AT_ALL = [
  '//api/upstream/v1/me',
  '/api//upstream/v1/me',
  '/API/UPSTREAM/v1/me',
  '/api/%75pstream/v1/me',
  '/api%2fupstream/v1/me',
  '/api/upstream/v1/me/../../../../v1/me',
  '//evil.test/v1/me',
  '//evil.test/api/upstream/v1/me',
  '/\\evil.test/api/upstream/v1/me',
  '/v1/me',
  '/@evil.test/v1/me',
  'http://evil.test/v1/me',
  'http://evil.test',
  'http://evil.test?/api/upstream/../v1/me',
  'http://evil.test/api/upstream/v1/../../admin',
  'http://evil.test/api/upstream/v1/..%2fadmin',
  'ftp://evil.test/api/upstream/v1/me',
  'javascript:/api/upstream/v1/me',
  'file:///api/upstream/v1/me',
  'evil.test:443',
  'api/upstream/v1/me',
  'v1/me',
  '@/api/upstream/v1/me',
  '?/api/upstream/v1/me',
  '*',
  '',
];

/** A target and exactly what the upstream is asked for. */
const FORWARDED: [target: string, path: string][] = [
  ['/api/upstream/v1/', '/v1/'],
  ['/api/upstream/v1/me', '/v1/me'],
  ['/api/upstream/v1/a?', '/v1/a?'],
  ['/api/upstream/v1/a??b', '/v1/a??b'],
  ['/api/upstream/v1/a?x=../../admin', '/v1/a?x=../../admin'],
  ['/api/upstream/v1/a?x=%2e%2e%2f&y=%00&z=%zz', '/v1/a?x=%2e%2e%2f&y=%00&z=%zz'],
  ['/api/upstream/v1/a?x=\\..\\', '/v1/a?x=\\..\\'],
  ['/api/upstream/v1/a.b..c', '/v1/a.b..c'],
  ['/api/upstream/v1/...', '/v1/...'],
  ['/api/upstream/v1/..a/b../.c', '/v1/..a/b../.c'],
  ['/api/upstream/v1/a;..', '/v1/a;..'],
  ['/api/upstream/v1/100%25', '/v1/100%25'],
  ['/api/upstream/v1/100%2525', '/v1/100%2525'],
  ['/api/upstream/v1/a%20b%3Fc%23d', '/v1/a%20b%3Fc%23d'],
  ['/api/upstream/v1/caf%C3%A9', '/v1/caf%C3%A9'],
  ['/api/upstream/v1/%F0%9F%8E%B5', '/v1/%F0%9F%8E%B5'],
  ['/api/upstream/v1/%EF%BC%A1%EF%BC%8F%EF%BC%A2', '/v1/%EF%BC%A1%EF%BC%8F%EF%BC%A2'],
  ['/api/upstream/v1/caf\xc3\xa9', '/v1/caf%C3%A9'],
  ['/api/upstream/v1/"<>`', '/v1/%22%3C%3E%60'],
  ['/api/upstream/v1//evil.test/x', '/v1//evil.test/x'],
  ['/api/upstream/v1/http://evil.test/x', '/v1/http://evil.test/x'],
  ['/api/upstream/v1/@evil.test/x', '/v1/@evil.test/x'],
  ['/api/upstream/v1/me:80', '/v1/me:80'],
  // Resolved by the server before the gateway sees them: what is left is an ordinary path below /v1/.
  ['/api/upstream/v1/./me', '/v1/me'],
  ['/api/upstream/v1/%2e/me', '/v1/me'],
  ['/api/upstream/v1/a/../me', '/v1/me'],
  ['/api/upstream/v1/../v1/me', '/v1/me'],
  ['/api/upstream/v2/%2e%2e/v1/me', '/v1/me'],
  ['/api/upstream/../upstream/v1/me', '/v1/me'],
  ['/x/../api/upstream/v1/me', '/v1/me'],
  ['/../../api/upstream/v1/me', '/v1/me'],
  ['/api/upstream\\v1\\me', '/v1/me'],
  ['/api\\upstream\\v1\\a\\..\\me', '/v1/me'],
  ['http://evil.test/api/upstream/v1/me', '/v1/me'],
  ['https://user:secret@evil.test:8443/api/upstream/v1/me?x', '/v1/me?x'],
];

describe('a proxied path', () => {
  it.each(NOWHERE)('that leads out of /v1/, or could, goes nowhere: %j', async (path) => {
    await using recorded = startRecorded();
    const answer = await rawGet(recorded.world, `/api/upstream${path}`);
    expect(answer.status).toBeOneOf([400, 404, 505]);
    expect(recorded.requestLines).toEqual([]);
  });

  it.each(NOWHERE_AT_ALL)('that the gateway does not have goes nowhere: %j', async (target) => {
    await using recorded = startRecorded();
    const answer = await rawGet(recorded.world, target);
    expect(answer.status).toBeOneOf([400, 404, 505]);
    expect(recorded.requestLines).toEqual([]);
  });

  it.each(FORWARDED)('below /v1/ is asked of the upstream: %j', async (target, path) => {
    await using recorded = startRecorded();
    const answer = await rawGet(recorded.world, target);
    expect(answer.status).toBe(200);
    expect(answer.body).toBe('found');
    expect(recorded.requestLines).toEqual([`GET /base${path} HTTP/1.1`]);
  });

  it('that is refused by the gateway is refused in the envelope', async () => {
    await using recorded = startRecorded();
    const answer = await rawGet(recorded.world, '/api/upstream/v1/..%2fadmin');
    expect(answer.status).toBe(404);
    expect(answer.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(JSON.parse(answer.body)).toEqual({ error: { message: 'There is nothing at this address.' } });
  });

  it.each([
    'gateway.test',
    'x',
    'a.b',
    '127.0.0.1:1',
    '[::1]',
    '[::1]:80',
    'gateway.test:99999',
    '..',
    '%2f',
    'a,b',
  ])('does not depend on the Host "%s"', async (name) => {
    await using recorded = startRecorded();
    const answer = await rawGet(recorded.world, '/api/upstream/v1/me', { host: `Host: ${name}\r\n` });
    expect(answer.status).toBe(200);
    expect(recorded.requestLines).toEqual(['GET /base/v1/me HTTP/1.1']);
  });

  const unusableHosts: [name: string, lines: string][] = [
    ['no Host', ''],
    ['an empty Host', 'Host:\r\n'],
    ['a blank Host', 'Host:   \r\n'],
    ['a space in the Host', 'Host: a b\r\n'],
    ['a path in the Host', 'Host: x/api/upstream/v1/me?\r\n'],
    ['a fragment in the Host', 'Host: x#\r\n'],
    ['a user in the Host', 'Host: user@gateway.test\r\n'],
    ['a backslash in the Host', 'Host: a\\b\r\n'],
    ['a letter outside ASCII in the Host', 'Host: \xe9.test\r\n'],
    ['an unclosed bracket in the Host', 'Host: [::1\r\n'],
    ['two Hosts', 'Host: gateway.test\r\nHost: evil.test\r\n'],
  ];

  // The paths are cut at other places by a router that takes a relative request.url for an absolute one.
  const disguised = ['', '/abcdef', '/abcdefghijkl', '/api/health?', '/?', '/x?/'].flatMap((prefix) =>
    unusableHosts.map(([name, host]): [string, string, string] => [
      `${prefix}/api/upstream/v1/me`,
      name,
      host,
    ]),
  );

  it.each(disguised)('%j never leads out of /v1/ with %s', async (target, _, host) => {
    await using recorded = startRecorded();
    const answer = await rawGet(recorded.world, target, { host });
    expect(answer.status).toBeOneOf([200, 400, 404, 405]);
    for (const line of recorded.requestLines) expect(line).toBe('GET /base/v1/me HTTP/1.1');
  });

  it('is served to HTTP/1.0', async () => {
    await using recorded = startRecorded();
    const answer = await rawGet(recorded.world, '/api/upstream/v1/me', { version: 'HTTP/1.0' });
    expect(answer.status).toBe(200);
    expect(recorded.requestLines).toEqual(['GET /base/v1/me HTTP/1.1']);
  });

  it('is served or refused, but not lost, when HTTP/1.0 comes without a Host', async () => {
    await using recorded = startRecorded();
    const answer = await rawGet(recorded.world, '/api/upstream/v1/me', { version: 'HTTP/1.0', host: '' });
    expect(answer.status).toBeOneOf([200, 400, 405]);
    for (const line of recorded.requestLines) expect(line).toBe('GET /base/v1/me HTTP/1.1');
  });

  it.each(['HTTP/0.9', 'HTTP/1.2', 'HTTP/2.0', 'http/1.1', 'HTTP/1.1 x', 'GARBAGE', ''])(
    'is refused with the version "%s"',
    async (version) => {
      await using recorded = startRecorded();
      const answer = await rawGet(recorded.world, '/api/upstream/v1/me', { version });
      expect(answer.status).toBe(505);
      expect(recorded.requestLines).toEqual([]);
    },
  );

  it.each([
    'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n',
    'Content-Length: 5\r\nContent-Length: 6\r\n',
  ])('cannot be followed by a smuggled request: %j', async (lines) => {
    await using recorded = startRecorded();
    const answer = await rawRequest(
      recorded.world.port,
      `POST /api/upstream/v1/me HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\n` +
        `${lines}Connection: close\r\n\r\n0\r\n\r\nGET /api/upstream/v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n`,
    );
    expect(answer.status).toBe(400);
    expect(recorded.requestLines).toEqual([]);
  });

  it('that is very long is served whole or refused', async () => {
    await using recorded = startRecorded();
    const path = `/v1/${'a'.repeat(12_000)}`;
    const answer = await rawGet(recorded.world, `/api/upstream${path}`);
    expect(answer.status).toBe(200);
    expect(recorded.requestLines).toEqual([`GET /base${path} HTTP/1.1`]);
    const tooLong = await rawGet(recorded.world, `/api/upstream/v1/${'a'.repeat(20_000)}`);
    expect(tooLong.status).toBeOneOf([414, 431]);
    expect(recorded.requestLines).toHaveLength(1);
  });
});
