import { describe, expect, it } from 'bun:test';
import { rawRequest } from '../support/raw-http.ts';
import { ACCESS_ONLY, ORIGIN, REFRESH_ONLY, startWorld, type World } from '../support/world.ts';

/** By raw socket, because fetch does not show how a body was framed. */
function get(world: World, path: string, cookie: string) {
  return rawRequest(
    world.port,
    `GET ${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`,
  );
}

const PATHS = [
  ['the proxy', '/api/upstream/v1/library', '/v1/library'],
  ['public playback', '/api/upstream/v1/music/public/1', '/v1/music/public/1'],
  ['models', '/api/music/models', '/v1/models'],
  ['session check', '/api/auth/session', '/v1/me'],
] as const;

/** Bun gives a type to each body of known length and to each string. */
function script(world: World, path: string, bytes: number, contentType?: string): void {
  world.upstream
    .on('POST /v1/auth/refresh', () => Response.json({ access_token: 'a', refresh_token: 'r' }))
    .on(`GET ${path}`, () => {
      const body = new ReadableStream(
        {
          start(controller) {
            controller.enqueue(Buffer.alloc(bytes, 'a'));
            controller.close();
          },
        },
        { highWaterMark: bytes + 1 },
      );
      return new Response(
        body,
        contentType === undefined ? {} : { headers: { 'content-type': contentType } },
      );
    });
}

describe.each(PATHS)('the Content-Type of a body that %s passes on', (_, path, upstreamPath) => {
  it.each([
    [1, ACCESS_ONLY],
    [12 * 1024, ACCESS_ONLY],
    [1, REFRESH_ONLY],
    [200_000, ACCESS_ONLY],
  ])('is not made up: %i bytes, %s', async (bytes, cookie) => {
    await using world = startWorld();
    script(world, upstreamPath, bytes);
    const { status, headers, body } = await get(world, path, cookie);
    expect(status).toBe(200);
    expect(headers.has('content-type')).toBe(false);
    expect(body).toContain('a'.repeat(Math.min(bytes, 100)));
    if (bytes <= 12 * 1024 && cookie === ACCESS_ONLY) {
      expect(headers.get('content-length')).toBe(String(bytes));
      expect(body).toHaveLength(bytes);
    }
  });

  it('is the one that the upstream sent', async () => {
    await using world = startWorld();
    script(world, upstreamPath, 1, 'text/x-odd');
    const { headers } = await get(world, path, ACCESS_ONLY);
    expect(headers.get('content-type')).toBe('text/x-odd');
  });
});
