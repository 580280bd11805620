import { afterAll, beforeEach, describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import * as PATHS from '../../support/proxied-paths.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { PROXIED_METHODS, PUBLIC } from '../../support/routes.ts';
import { type RawCall, rawCall } from '../../support/shared-world.ts';
import { REFRESH_ONLY, SIGNED_IN, startWorld } from '../../support/world.ts';

const ME = '/api/upstream/v1/me';
const FOUND = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfound';
const UNAUTHORIZED = 'HTTP/1.1 401 No\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/** The heads of the requests at the upstream, byte for byte. */
const received: string[] = [];
let sent = FOUND;
const upstream = await startRawUpstream((socket, first) => {
  let head = '';
  const take = (more: string) => {
    head += more;
    if (!head.includes('\r\n\r\n')) return;
    received.push(head);
    socket.end(sent);
  };
  socket.on('data', (data) => take(data.toString()));
  take(first);
});
const world = startWorld({ UPSTREAM_URL: `${upstream.url}/base` });

beforeEach(() => {
  received.length = 0;
  sent = FOUND;
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

function requestLines(): (string | undefined)[] {
  return received.splice(0).map((head) => head.split('\r\n', 1)[0]);
}

async function expectForwarded(target: string, path: string, call?: RawCall): Promise<void> {
  const { status } = await rawCall(world, `GET ${target}`, call);
  expect([target, status, ...requestLines()]).toEqual([target, 200, `GET /base${path} HTTP/1.1`]);
}

async function expectRefused(target: string, call?: RawCall): Promise<void> {
  const { status } = await rawCall(world, `GET ${target}`, call);
  expect([target, [400, 404, 505].includes(status), ...requestLines()]).toEqual([target, true]);
}

// Which paths are refused, and which are public: unit/proxy-target.test.ts.
describe('a proxied path', () => {
  it.each(Object.entries(PATHS.REFUSED_PATHS))('is not forwarded with %s', async (_, [path]) => {
    await expectRefused(`/api/upstream${path}`);
  });

  it('is refused with the envelope, before the session and the method are checked', async () => {
    for (const path of ['/v1/..%2fadmin', '/', '', '/v2/library', '/v1', '/?/v1/library']) {
      for (const method of ['GET', 'POST', 'PROPFIND']) {
        const { status, body } = await rawCall(world, `${method} /api/upstream${path}`, { cookie: '' });
        expect([path, status, body]).toEqual([
          path,
          404,
          JSON.stringify({ error: { message: messages.en.notFound } }),
        ]);
      }
    }
  });

  it('is not found in another target', async () => {
    const targets = String.raw`//api/upstream/v1/me /API/UPSTREAM/v1/me /api/%75pstream/v1/me /api%2fupstream/v1/me
      /api/upstream/v1/me/../../../../v1/me /v1/me /@evil.test/v1/me * //evil.test/api/upstream/v1/me
      /\evil.test/api/upstream/v1/me http://evil.test/v1/me http://evil.test?/api/upstream/../v1/me
      http://evil.test/api/upstream/v1/..%2fadmin ftp://evil.test/api/upstream/v1/me file:///api/upstream/v1/me
      evil.test:443 v1/me api/upstream/v1/me @/api/upstream/v1/me ?/api/upstream/v1/me`;
    for (const target of ['', '/api/upstream/v1/a b', ...targets.split(/\s+/)]) await expectRefused(target);
  });

  it('is forwarded byte for byte', async () => {
    const paths = [...PATHS.FORWARDED_PATHS, ...PATHS.PUBLIC_PATHS, ...PATHS.NEARLY_PUBLIC_PATHS];
    for (const path of [...paths, `/v1/${'a'.repeat(12_000)}`])
      await expectForwarded(`/api/upstream${path}`, path);
  });

  it('is forwarded as the server resolves it, whatever the Host', async () => {
    await expectForwarded('/api/upstream/v1/caf\xc3\xa9"<>`', '/v1/caf%C3%A9%22%3C%3E%60');
    const targets = String.raw`/api/upstream/v1/%2e/me /api/upstream/v1/a/../me /api/upstream/v2/%2e%2e/v1/me
      /x/../api/upstream/v1/me /../../api/upstream/v1/me /api\upstream\v1\a\..\me
      http://evil.test/api/upstream/v1/me https://user:secret@evil.test:8443/api/upstream/v1/me`;
    for (const target of targets.split(/\s+/)) await expectForwarded(target, '/v1/me');
    for (const name of ['x', '127.0.0.1:1', '[::1]:80', 'gateway.test:99999', '..', '%2f', 'a,b']) {
      await expectForwarded(ME, '/v1/me', { host: `Host: ${name}\r\n` });
    }
    await expectForwarded(ME, '/v1/me', { version: 'HTTP/1.0' });
  });

  // A router that takes a relative request.url for an absolute one cuts these targets at other places.
  it.each([
    ...[
      '',
      'Host:\r\n',
      'Host: a b\r\n',
      'Host: x/api/upstream/v1/me?\r\n',
      'Host: x#\r\n',
      'Host: u@g.test\r\n',
    ],
    ...['Host: a\\b\r\n', 'Host: \xe9.test\r\n', 'Host: [::1\r\n', 'Host: g.test\r\nHost: evil.test\r\n'],
  ])('never leads out of /v1/ with an unusable Host: %j', async (host) => {
    for (const prefix of ['', '/abcdef', '/abcdefghijkl', '/api/health?', '/?', '/x?/']) {
      for (const version of ['HTTP/1.1', 'HTTP/1.0']) {
        const { status } = await rawCall(world, `GET ${prefix}${ME}`, { host, version });
        expect(status).toBeOneOf([200, 400, 404, 405]);
      }
    }
    for (const line of requestLines()) expect(line).toBe('GET /base/v1/me HTTP/1.1');
  });
});

describe('public playback', () => {
  it.each(['', SIGNED_IN, REFRESH_ONLY])(
    'sends no credentials and refreshes nothing: "%s"',
    async (cookie) => {
      sent = UNAUTHORIZED;
      const { status, headers } = await rawCall(world, `GET ${PUBLIC.path}`, { cookie });
      expect([status, headers.getSetCookie()]).toEqual([401, []]);
      expect(received.join()).not.toMatch(/authorization|cookie|origin/i);
      expect(requestLines()).toEqual(['GET /base/v1/music/public/abc HTTP/1.1']);
    },
  );

  it.each([
    ...PROXIED_METHODS.slice(1).map((method) => `${method} ${PUBLIC.path}`),
    // The server resolves dot segments first.
    ...[`GET ${PUBLIC.path}/`, `GET ${PUBLIC.path}/..`],
  ])('is not what %s asks for, which needs a session', async (start) => {
    expect((await rawCall(world, start, { cookie: '' })).status).toBe(401);
    expect(received).toEqual([]);
    expect((await rawCall(world, start)).status).toBe(200);
    expect(received.join()).toMatch(/authorization: Bearer access-1/i);
  });

  // Once, the places were taken before the request was refused, and never released.
  it('releases its places when it is refused', async () => {
    await expectRefused(PUBLIC.path, { cookie: '', lines: ['Accept: \x7f'] });
    const { streams, ledger } = world.admission;
    expect([streams.inUse, ledger.inUse]).toEqual([0, 0]);
  });
});
