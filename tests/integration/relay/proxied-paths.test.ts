import { afterAll, describe, expect, it } from 'bun:test';
import * as PATHS from '../../support/proxied-paths.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { rawCall } from '../../support/shared-world.ts';
import { startWorld } from '../../support/world.ts';

const FOUND = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfound';
/** A space ends the target, and what follows is no version of HTTP. */
const REFUSED = {
  400: `* ftp://evil.test/api/upstream/v1/me file:///api/upstream/v1/me evil.test:443 v1/me api/upstream/v1/me
    @/api/upstream/v1/me ?/api/upstream/v1/me`.split(/\s+/),
  404: String.raw`/api/%75pstream/v1/me /api%2fupstream/v1/me /api/upstream/v1/me/../../../../v1/me /v1/me
    /@evil.test/v1/me //evil.test/api/upstream/v1/me /\evil.test/api/upstream/v1/me http://evil.test/v1/me
    http://evil.test?/api/upstream/../v1/me http://evil.test/api/upstream/v1/..%2fadmin`.split(/\s+/),
  505: ['/api/upstream/v1/a b', '/api/upstream/v1/%252e%252e '],
};
/** The server resolves these. */
const RESOLVED = String.raw`/api/upstream/v1/%2e/me /api/upstream/v1/a/../me /api/upstream/v2/%2e%2e/v1/me
  /x/../api/upstream/v1/me /../../api/upstream/v1/me /api\upstream\v1\a\..\me
  http://evil.test/api/upstream/v1/me https://user:secret@evil.test:8443/api/upstream/v1/me`;

/** The heads of the requests at the upstream, byte for byte. */
const received: string[] = [];
const upstream = await startRawUpstream((socket, head) => {
  received.push(head);
  socket.end(FOUND);
});
const world = startWorld({ UPSTREAM_URL: `${upstream.url}/base` });

afterAll(() => world[Symbol.asyncDispose]());
afterAll(() => upstream[Symbol.asyncDispose]());

/** The request lines, and whether the session's token came with each. */
function forwarded(): [line: string, hasToken: boolean][] {
  return received.splice(0).map((head) => [head.split('\r\n', 1)[0] ?? '', /^authorization:/im.test(head)]);
}

async function expectForwarded(target: string, path: string, hasToken = true, method = 'GET'): Promise<void> {
  const { status } = await rawCall(world, `${method} ${target}`);
  const line = `${method} /base${path} HTTP/1.1`;
  expect([target, status, ...forwarded()]).toEqual([target, 200, [line, hasToken]]);
}

async function expectNotForwarded(target: string, refusal: number): Promise<void> {
  const { status } = await rawCall(world, `GET ${target}`);
  expect([target, status, ...forwarded()]).toEqual([target, refusal]);
}

// All that are refused: unit/proxy-target.test.ts.
describe('a proxied path', () => {
  it('is not forwarded when it is one of those that are refused, nor found in another target', async () => {
    const ofEachRule = Object.values(PATHS.REFUSED_PATHS).map(([path]) => `/api/upstream${path}`);
    for (const target of ofEachRule) await expectNotForwarded(target, 404);
    for (const [refusal, targets] of Object.entries(REFUSED))
      for (const target of targets) await expectNotForwarded(target, Number(refusal));
  });

  it.each([
    ['with the session', PATHS.FORWARDED_PATHS, 'GET', true],
    ['with the session when it is only close to a public one', PATHS.NEARLY_PUBLIC_PATHS, 'GET', true],
    ['with the session when a public one is to be changed', PATHS.PUBLIC_PATHS, 'HEAD', true],
    ['without the session', PATHS.PUBLIC_PATHS, 'GET', false],
  ])('is forwarded byte for byte, %s', async (_, paths, method, hasToken) => {
    for (const path of paths) await expectForwarded(`/api/upstream${path}`, path, hasToken, method);
  });

  it('is forwarded as the server resolves it', async () => {
    await expectForwarded('/api/upstream/v1/caf\xc3\xa9"<>`', '/v1/caf%C3%A9%22%3C%3E%60');
    for (const target of RESOLVED.split(/\s+/)) await expectForwarded(target, '/v1/me');
  });
});
