import { expect, it, spyOn } from 'bun:test';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { PROXIED_PATH } from '../support/routes.ts';
import { rawCall } from '../support/shared-world.ts';
import { startWorld } from '../support/world.ts';

const RANGE = 'Content-Range: bytes 65536-77823/1440044\r\n';

it.each([
  ['is kept for 1 byte, which is read first', 'GET', '200', 'Content-Length: 1', 1],
  ['is kept for 12 KiB, which are read first', 'GET', '200', 'Content-Length: 12288', 12_288],
  ['is kept for a 206 of 12 KiB', 'GET', '206', `${RANGE}Content-Length: 12288`, 12_288],
  ['is kept for HEAD, whatever the size', 'HEAD', '200', 'Content-Length: 28800044', 28_800_044],
  ['is not made up for HEAD', 'HEAD', '200', 'Transfer-Encoding: chunked', null],
])('the Content-Length of a relayed body %s', async (_, method, status, lines, length) => {
  const body = method === 'HEAD' ? '' : 'a'.repeat(length ?? 0);
  using fetched = spyOn(globalThis, 'fetch');
  await using upstream = await startRawUpstream(async (socket) => {
    socket.write(`HTTP/1.1 ${status} X\r\n${lines}\r\n\r\n`);
    // The gateway has the head before the body is sent: what arrives with it keeps its length anyway.
    await fetched.mock.results[0]?.value;
    socket.write(body);
  });
  await using world = startWorld({ UPSTREAM_URL: upstream.url });
  // By raw socket, because fetch does not show how a body was framed.
  const response = await rawCall(world, `${method} ${PROXIED_PATH}`);
  expect(response.status).toBe(Number(status));
  expect(response.headers.get('content-length')).toBe(length === null ? null : String(length));
  expect(response.body).toBe(body);
});
