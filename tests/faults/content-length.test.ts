import { expect, it, spyOn } from 'bun:test';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { PROXIED_PATH } from '../support/routes.ts';
import { rawCall } from '../support/shared-world.ts';
import { startWorld } from '../support/world.ts';

it.each([
  ['is kept for 12 KiB, which are read first', 'GET', 'Content-Length: 12288', 12_288],
  ['is kept for HEAD, whatever the size', 'HEAD', 'Content-Length: 28800044', 28_800_044],
  ['is not made up for HEAD', 'HEAD', 'Transfer-Encoding: chunked', null],
])('the Content-Length of a relayed body %s', async (_, method, line, length) => {
  const body = method === 'HEAD' ? '' : 'a'.repeat(length ?? 0);
  using fetched = spyOn(globalThis, 'fetch');
  await using upstream = await startRawUpstream(async (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\n${line}\r\n\r\n`);
    // The gateway has the head before the body is sent: what arrives with it keeps its length anyway.
    await fetched.mock.results[0]?.value;
    socket.write(body);
  });
  await using world = startWorld({ UPSTREAM_URL: upstream.url });
  // By raw socket, because fetch does not show how a body was framed.
  const response = await rawCall(world, `${method} ${PROXIED_PATH}`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-length')).toBe(length === null ? null : String(length));
  expect(response.body).toBe(body);
});
