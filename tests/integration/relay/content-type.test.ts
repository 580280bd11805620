import { describe, expect, it } from 'bun:test';
import { BUFFERED, PUBLIC, proxied } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY, REFRESH_ONLY } from '../../support/world.ts';

const world = sharedWorld();
world.upstream.on('POST /v1/auth/refresh', () => Response.json({ access_token: 'a', refresh_token: 'r' }));

/** Bun itself gives a type to each body of known length and to each string. */
function script(call: string, bytes: number, headers: Record<string, string> = {}): void {
  world.upstream.on(call, () => {
    const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      controller.enqueue(Buffer.alloc(bytes, 'a'));
      controller.close();
    };
    return new Response(new ReadableStream({ start }, { highWaterMark: bytes + 1 }), { headers });
  });
}

describe.each([...BUFFERED, proxied('GET'), PUBLIC])('the Content-Type for $name', ({ path, calls }) => {
  // By raw socket, because fetch does not show how a body was framed.
  it.each([
    [1, ACCESS_ONLY],
    [12 * 1024, ACCESS_ONLY],
    [1, REFRESH_ONLY],
    [200_000, ACCESS_ONLY],
  ])('is not made up: %i bytes, %s', async (bytes, cookie) => {
    script(calls.join(), bytes);
    const { status, headers, body } = await rawCall(world, `GET ${path}`, { cookie });
    expect(status).toBe(200);
    expect(headers.has('content-type')).toBe(false);
    expect(body).toContain('a'.repeat(Math.min(bytes, 100)));
    if (bytes <= 12 * 1024 && cookie === ACCESS_ONLY) {
      expect(headers.get('content-length')).toBe(String(bytes));
      expect(body).toHaveLength(bytes);
    }
  });

  it('is the one that the upstream sent', async () => {
    script(calls.join(), 1, { 'content-type': 'text/x-odd' });
    const { headers } = await rawCall(world, `GET ${path}`, { cookie: ACCESS_ONLY });
    expect(headers.get('content-type')).toBe('text/x-odd');
  });
});
