import { describe, expect, it } from 'bun:test';
import { rawRequest } from '../support/raw-http.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { ACCESS_ONLY, ORIGIN, startWorld, type World } from '../support/world.ts';

const PATH = '/api/upstream/v1/music/creations/1/content';
const CALL = 'GET /v1/music/creations/1/content';

/** By raw socket, because fetch does not show how a body was framed. */
function get(world: World, method = 'GET') {
  return rawRequest(
    world.port,
    `${method} ${PATH} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\nConnection: close\r\n\r\n`,
  );
}

describe('Content-Length of a relayed body', () => {
  /** Sends the body after the headers have gone out: what has arrived whole already keeps its length anyway. */
  function startSlowBody(head: string, size: number) {
    return startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 ${head}\r\nContent-Length: ${size}\r\n\r\n`);
      setTimeout(() => socket.write('a'.repeat(size)), 50);
    });
  }

  it.each([1, 1024, 12 * 1024])('is kept for %i bytes, which are read first', async (size) => {
    await using upstream = await startSlowBody('200 OK', size);
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const { status, headers, body } = await get(world);
    expect(status).toBe(200);
    expect(headers.get('content-length')).toBe(String(size));
    expect(body).toBe('a'.repeat(size));
  });

  it('is kept for a 206 of 12 KiB, with its Content-Range', async () => {
    const contentRange = 'bytes 65536-77823/1440044';
    await using upstream = await startSlowBody(
      `206 Partial Content\r\nContent-Range: ${contentRange}`,
      12_288,
    );
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const { status, headers } = await get(world);
    expect(status).toBe(206);
    expect(headers.get('content-length')).toBe('12288');
    expect(headers.get('content-range')).toBe(contentRange);
  });

  it('is kept for HEAD, whatever the size', async () => {
    await using world = startWorld();
    world.upstream.on(
      CALL.replace('GET', 'HEAD'),
      () => new Response(null, { headers: { 'content-length': '28800044' } }),
    );
    const { status, headers, body } = await get(world, 'HEAD');
    expect(status).toBe(200);
    expect(headers.get('content-length')).toBe('28800044');
    expect(body).toBe('');
  });

  it('is not made up for HEAD when the upstream does not say it', async () => {
    await using upstream = await startRawUpstream((socket) =>
      socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'),
    );
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const { status, headers, body } = await get(world, 'HEAD');
    expect(status).toBe(200);
    expect(headers.get('content-length')).toBeNull();
    expect(body).toBe('');
  });

  it.each([12 * 1024 + 1, 64 * 1024, 128 * 1024, 128 * 1024 + 1])(
    'is not there for %i bytes, which arrive whole nevertheless',
    async (size) => {
      await using world = startWorld();
      world.upstream.on(CALL, () => new Response(Buffer.alloc(size, 'a')));
      const body = await (await world.request(PATH, { cookie: ACCESS_ONLY })).text();
      expect(body).toBe('a'.repeat(size));
    },
  );

  // When this fails, Bun keeps the length of streamed bodies: then nothing need be read first (fetch-upstream.ts).
  it('is dropped by Bun for a larger body, which goes out in chunks', async () => {
    await using world = startWorld();
    world.upstream.on(CALL, () => new Response(Buffer.alloc(8 * 1024 * 1024)));
    const { status, headers } = await get(world);
    expect(status).toBe(200);
    expect(headers.get('content-length')).toBeNull();
    expect(headers.get('transfer-encoding')).toBe('chunked');
  });
});
