import { afterAll, beforeEach, describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import {
  FORWARDED_PATHS,
  NEARLY_PUBLIC_PATHS,
  PUBLIC_PATHS,
  REFUSED_PATHS,
} from '../../support/proxied-paths.ts';
import { PROXIED_METHODS, PUBLIC } from '../../support/routes.ts';
import { type RawCall, rawCall } from '../../support/shared-world.ts';
import { ORIGIN, startWorld } from '../../support/world.ts';

const REFUSALS = [400, 404, 505];
const ME = '/api/upstream/v1/me';

/** The heads of the requests at the upstream, byte for byte. */
const received: string[] = [];
const upstream = Bun.listen<{ head: string }>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = { head: '' };
    },
    data(socket, chunk) {
      socket.data.head += chunk.toString('latin1');
      if (!socket.data.head.includes('\r\n\r\n')) return;
      received.push(socket.data.head);
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfound');
    },
  },
});
const world = startWorld({ UPSTREAM_URL: `http://127.0.0.1:${upstream.port}/base` });

beforeEach(() => {
  received.length = 0;
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  upstream.stop(true);
});

function requestLines(): (string | undefined)[] {
  return received.map((head) => head.split('\r\n', 1)[0]);
}

function get(target: string, call: RawCall = {}) {
  return rawCall(world, `GET ${target}`, call);
}

/** With the beginning of each path, for the name of its test. */
function named(paths: readonly string[]) {
  return paths.map((path) => [path.slice(0, 60), path] as const);
}

async function expectForwarded(target: string, path: string, call?: RawCall): Promise<void> {
  const response = await get(target, call);
  expect(response.status).toBe(200);
  expect(response.body).toBe('found');
  expect(requestLines()).toEqual([`GET /base${path} HTTP/1.1`]);
}

describe('a proxied path', () => {
  it.each(Object.entries(REFUSED_PATHS))('is not forwarded with %s', async (_, paths) => {
    for (const path of paths) {
      const { status } = await get(`/api/upstream${path}`);
      expect([path, REFUSALS.includes(status), requestLines()]).toEqual([path, true, []]);
    }
  });

  it('is refused with the envelope', async () => {
    const response = await get('/api/upstream/v1/..%2fadmin');
    expect(response.status).toBe(404);
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(JSON.parse(response.body)).toEqual({ error: { message: messages.en.notFound } });
  });

  it.each(['/', '', '/v2/library', '/v1', '/?/v1/library'])(
    'is refused before the session and the method are checked: "%s"',
    async (path) => {
      for (const method of [...PROXIED_METHODS, 'PROPFIND']) {
        const { status } = await rawCall(world, `${method} /api/upstream${path}`, { cookie: '' });
        expect(status).toBe(404);
      }
    },
  );

  it.each([
    ...['//api/upstream/v1/me', '/api//upstream/v1/me', '/API/UPSTREAM/v1/me', '/api/%75pstream/v1/me'],
    ...['/api%2fupstream/v1/me', '/api/upstream/v1/me/../../../../v1/me', '/v1/me', '/@evil.test/v1/me'],
    ...['//evil.test/v1/me', '//evil.test/api/upstream/v1/me', '/\\evil.test/api/upstream/v1/me'],
    ...['http://evil.test/v1/me', 'http://evil.test', 'http://evil.test?/api/upstream/../v1/me'],
    ...['http://evil.test/api/upstream/v1/../../admin', 'http://evil.test/api/upstream/v1/..%2fadmin'],
    ...['ftp://evil.test/api/upstream/v1/me', 'javascript:/api/upstream/v1/me', 'file:///api/upstream/v1/me'],
    ...['evil.test:443', 'api/upstream/v1/me', 'v1/me', '@/api/upstream/v1/me', '?/api/upstream/v1/me'],
    ...['/api/upstream/v1/a b', '*', ''],
  ])('is not found in the target "%s"', async (target) => {
    expect((await get(target)).status).toBeOneOf(REFUSALS);
    expect(received).toEqual([]);
  });

  it.each(named([...FORWARDED_PATHS, `/v1/${'a'.repeat(12_000)}`]))(
    'is forwarded unchanged: %s',
    async (_, path) => {
      await expectForwarded(`/api/upstream${path}`, path);
    },
  );

  it.each([
    ['/api/upstream/v1/caf\xc3\xa9', '/v1/caf%C3%A9'],
    ['/api/upstream/v1/"<>`', '/v1/%22%3C%3E%60'],
    // The server resolves these before the gateway sees them: what is left is an ordinary path below /v1/.
    ...[
      ...['/api/upstream/v1/./me', '/api/upstream/v1/%2e/me', '/api/upstream/v1/a/../me'],
      ...['/api/upstream/v1/../v1/me', '/api/upstream/v2/%2e%2e/v1/me', '/api/upstream/../upstream/v1/me'],
      ...['/x/../api/upstream/v1/me', '/../../api/upstream/v1/me', '/api/upstream\\v1\\me'],
      ...['/api\\upstream\\v1\\a\\..\\me', 'http://evil.test/api/upstream/v1/me'],
      'https://user:secret@evil.test:8443/api/upstream/v1/me',
    ].map((target): [string, string] => [target, '/v1/me']),
  ])('of the target %j is forwarded as %s', async (target, path) => {
    await expectForwarded(target, path);
  });

  it('is refused when it is longer than the server allows', async () => {
    expect((await get(`/api/upstream/v1/${'a'.repeat(20_000)}`)).status).toBeOneOf([414, 431]);
    expect(received).toEqual([]);
  });
});

describe('the Host of a proxied request', () => {
  it.each([
    ...['gateway.test', 'x', 'a.b', '127.0.0.1:1', '[::1]', '[::1]:80'],
    ...['gateway.test:99999', '..', '%2f', 'a,b'],
  ])('does not matter: %s', async (name) => {
    await expectForwarded(ME, '/v1/me', { host: `Host: ${name}\r\n` });
  });

  const UNUSABLE = [
    ...['', 'Host:\r\n', 'Host:   \r\n', 'Host: a b\r\n', 'Host: x/api/upstream/v1/me?\r\n', 'Host: x#\r\n'],
    ...['Host: user@gateway.test\r\n', 'Host: a\\b\r\n', 'Host: \xe9.test\r\n', 'Host: [::1\r\n'],
    'Host: gateway.test\r\nHost: evil.test\r\n',
  ];

  // A router that takes a relative request.url for an absolute one cuts these targets at other places.
  it.each(UNUSABLE)('never leads out of /v1/ when it is unusable: %j', async (host) => {
    for (const prefix of ['', '/abcdef', '/abcdefghijkl', '/api/health?', '/?', '/x?/']) {
      for (const version of ['HTTP/1.1', 'HTTP/1.0']) {
        const { status } = await get(prefix + ME, { host, version });
        expect(status).toBeOneOf([200, 400, 404, 405]);
      }
      for (const line of requestLines()) expect(line).toBe('GET /base/v1/me HTTP/1.1');
    }
  });
});

describe('the HTTP version of a proxied request', () => {
  it('may be 1.0, and no other than 1.1', async () => {
    await expectForwarded(ME, '/v1/me', { version: 'HTTP/1.0' });
    for (const version of ['HTTP/0.9', 'HTTP/1.2', 'HTTP/2.0', 'http/1.1', 'HTTP/1.1 x', 'GARBAGE', '']) {
      expect([version, (await get(ME, { version })).status]).toEqual([version, 505]);
    }
    expect(received).toHaveLength(1);
  });
});

describe('public playback', () => {
  it.each(named([...PUBLIC_PATHS, `/v1/music/public/${'x'.repeat(500)}`]))(
    'needs no session and sends none: %s',
    async (_, path) => {
      for (const call of [{ cookie: '' }, {}]) {
        received.length = 0;
        await expectForwarded(`/api/upstream${path}`, path, call);
        expect(received.join()).not.toMatch(/authorization|cookie|origin/i);
      }
    },
  );

  it.each(NEARLY_PUBLIC_PATHS)('is not what is at %s', async (path) => {
    const response = await get(`/api/upstream${path}`, { cookie: '' });
    expect(response.status).toBe(401);
    expect(JSON.parse(response.body)).toEqual({ error: { message: messages.en.notSignedIn } });
    expect(received).toEqual([]);
    await expectForwarded(`/api/upstream${path}`, path);
    expect(received.join()).toMatch(/authorization: Bearer access-1/i);
  });

  it.each(PROXIED_METHODS.slice(1))('is not what %s asks for', async (method) => {
    const without = await rawCall(world, `${method} ${PUBLIC.path}`, { cookie: '' });
    expect(without.status).toBe(401);
    expect(received).toEqual([]);
    expect((await rawCall(world, `${method} ${PUBLIC.path}`)).status).toBe(200);
    expect(received.join()).toMatch(/authorization: Bearer access-1/i);
  });

  it.each([
    ...['/v1/music/public/..', '/v1/music/public/.', '/v1/music/public/%2e%2E'],
    ...['/v1/music/public/../x', '/v1/music/public/abc/..'],
  ])('is decided after dot segments are resolved: %s', async (path) => {
    expect((await get(`/api/upstream${path}`, { cookie: '' })).status).toBe(401);
    expect(received).toEqual([]);
  });

  it.each(['abc#', 'abc%', 'a%2fb', 'abc?#', 'abc '])(
    'is refused when another server could read its path differently: "%s"',
    async (id) => {
      expect((await get(`/api/upstream/v1/music/public/${id}`, { cookie: '' })).status).toBeOneOf(REFUSALS);
      expect(received).toEqual([]);
    },
  );

  // Once, the places were taken before the request was refused, and never released.
  it.each([PUBLIC.path, `${PUBLIC.path}/content`])(
    'releases its places when it is refused: %s',
    async (path) => {
      expect((await get(path, { cookie: '', lines: ['Accept: \x7f'] })).status).toBe(400);
      const { streams, ledger } = world.admission;
      expect([streams, ledger].map(({ inUse }) => inUse)).toEqual([0, 0]);
      expect(received).toEqual([]);
    },
  );
});
