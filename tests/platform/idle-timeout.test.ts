/** Bun's idle timeout, on which the gateway relies: src/gateway/exchange/exchange.ts sets the 60 s that it uses. */

import { expect, it } from 'bun:test';
import net from 'node:net';

const IDLE_SECONDS = 2;
const LOCAL = { port: 0, hostname: '127.0.0.1' };
const BLOCK = new Uint8Array(64 * 1024);
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** An upstream with this body, and a relay that sets the timeout of a request as the gateway does. */
function startRelay(pull: (controller: ReadableStreamDefaultController<Uint8Array>) => void | Promise<void>) {
  const { promise: cancelled, resolve: cancel } = Promise.withResolvers<void>();
  const body = () => new Response(new ReadableStream({ pull, cancel: () => cancel() }));
  const upstream = Bun.serve({ ...LOCAL, idleTimeout: 0, fetch: body });
  const relay = Bun.serve({
    ...LOCAL,
    idleTimeout: IDLE_SECONDS,
    async fetch(request, server) {
      server.timeout(request, 0);
      const { body } = await fetch(upstream.url, { decompress: false });
      server.timeout(request, IDLE_SECONDS);
      return new Response(body);
    },
  });
  const stop = () => Promise.all([relay.stop(true), upstream.stop(true)]).then(() => {});
  return { port: relay.port ?? 0, cancelled, [Symbol.asyncDispose]: stop };
}

function connect(port: number, head = REQUEST, onData: (socket: net.Socket) => void = () => {}) {
  const socket = net.connect(port, '127.0.0.1', () => socket.write(head));
  socket.on('data', () => onData(socket)).on('error', () => {});
  return { socket, closed: new Promise((resolve) => socket.on('close', resolve)) };
}

it('cuts off a silent body and a reader that has stopped, but not a slow one', async () => {
  await using silent = startRelay(async (controller) => {
    controller.enqueue(BLOCK);
    await new Promise(() => {});
  });
  await using endless = startRelay((controller) => controller.enqueue(BLOCK));
  const slow = connect(endless.port, REQUEST, (socket) => {
    socket.pause();
    setTimeout(() => socket.resume(), 300);
  });
  const stopped = connect(endless.port, REQUEST, (socket) => socket.pause());
  // A paused socket does not notice that it was closed; the server does.
  await Promise.all([connect(silent.port).closed, endless.cancelled]);
  expect(slow.socket.closed).toBe(false);
  slow.socket.destroy();
  stopped.socket.destroy();
});

it('cuts off a head that drips', async () => {
  await using server = startRelay(() => {});
  const { socket, closed } = connect(server.port, REQUEST.slice(0, -2));
  const drip = setInterval(() => socket.write('x'), 100);
  await closed;
  clearInterval(drip);
});
