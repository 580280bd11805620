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
  it.each([
    ['1 byte, which is read first', '200 OK', 1, null],
    ['1024 bytes, which are read first', '200 OK', 1024, null],
    ['12 KiB, which are read first', '200 OK', 12 * 1024, null],
    ['a 206 of 12 KiB', '206 Partial Content', 12 * 1024, 'bytes 65536-77823/1440044'],
  ])('is kept for %s', async (_, head, size, range) => {
    const rangeLine = range === null ? '' : `Content-Range: ${range}\r\n`;
    await using upstream = await startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 ${head}\r\n${rangeLine}Content-Length: ${size}\r\n\r\n`);
      // The body is sent after the headers have gone out: what arrives at once keeps its length anyway.
      setTimeout(() => socket.write('a'.repeat(size)), 50);
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const { status, headers, body } = await get(world);
    expect(status).toBe(Number.parseInt(head, 10));
    expect(headers.get('content-length')).toBe(String(size));
    expect(headers.get('content-range')).toBe(range);
    expect(body).toBe('a'.repeat(size));
  });

  it.each([
    ['is kept for HEAD, whatever the size', 'Content-Length: 28800044', '28800044'],
    ['is not made up for HEAD when the upstream does not send it', 'Transfer-Encoding: chunked', null],
  ])('%s', async (_, line, length) => {
    await using upstream = await startRawUpstream((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\n${line}\r\n\r\n`),
    );
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const { status, headers, body } = await get(world, 'HEAD');
    expect(status).toBe(200);
    expect(headers.get('content-length')).toBe(length);
    expect(body).toBe('');
  });

  // When this fails, Bun keeps the length of streamed bodies: then nothing need be read first (fetch-upstream.ts).
  it.each([12 * 1024 + 1, 64 * 1024, 128 * 1024, 128 * 1024 + 1, 8 * 1024 * 1024])(
    'is dropped by Bun for %i bytes, which arrive complete in chunks',
    async (size) => {
      await using world = startWorld();
      world.upstream.on(CALL, () => new Response(Buffer.alloc(size, 'a')));
      const response = await world.request(PATH, { cookie: ACCESS_ONLY });
      expect(await response.text()).toBe('a'.repeat(size));
      expect(response.headers.get('content-length')).toBeNull();
      expect(response.headers.get('transfer-encoding')).toBe('chunked');
    },
  );
});
