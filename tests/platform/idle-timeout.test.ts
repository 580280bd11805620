/** Bun's idle timeout, on which the gateway relies: src/gateway/http/idle-timeout.ts sets the 60 s that it uses. */

import { expect, it } from 'bun:test';
import net from 'node:net';

const IDLE_SECONDS = 2;
const LOCAL = { port: 0, hostname: '127.0.0.1' };
const BLOCK = new Uint8Array(64 * 1024);

/** An upstream with this body, and a relay that sets the timeout of a request as the gateway does. */
function startRelayed(
  pull: (controller: ReadableStreamDefaultController<Uint8Array>) => void | Promise<void>,
) {
  const cancelled = Promise.withResolvers<void>();
  const upstream = Bun.serve({
    ...LOCAL,
    idleTimeout: 0,
    fetch: () => new Response(new ReadableStream({ pull, cancel: () => cancelled.resolve() })),
  });
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
  return {
    port: relay.port ?? 0,
    cancelled: cancelled.promise,
    async [Symbol.asyncDispose]() {
      await Promise.all([relay.stop(true), upstream.stop(true)]);
    },
  };
}

function connect(port: number, head: string, onData: (socket: net.Socket) => void = () => {}) {
  const closed = Promise.withResolvers<void>();
  const socket = net.connect(port, '127.0.0.1', () => socket.write(head));
  socket.on('data', () => onData(socket)).on('error', () => {});
  socket.on('close', () => closed.resolve());
  return { socket, closed: closed.promise };
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

it('cuts off a silent body and a reader that has stopped, but not a slow one', async () => {
  await using silent = startRelayed(async (controller) => {
    controller.enqueue(BLOCK);
    await new Promise(() => {});
  });
  await using endless = startRelayed((controller) => controller.enqueue(BLOCK));
  let isOpen = true;
  const slow = connect(endless.port, GET, (socket) => {
    socket.pause();
    setTimeout(() => socket.resume(), 300);
  });
  void slow.closed.then(() => {
    isOpen = false;
  });
  const stopped = connect(endless.port, GET, (socket) => socket.pause());
  // A paused socket does not notice that it was closed; the server does.
  await Promise.all([connect(silent.port, GET).closed, endless.cancelled]);
  expect(isOpen).toBe(true);
  slow.socket.destroy();
  stopped.socket.destroy();
});

it('cuts off a head that drips', async () => {
  await using server = startRelayed(() => {});
  const dripping = connect(server.port, GET.slice(0, -2));
  const drip = setInterval(() => dripping.socket.write('x'), 100);
  await dripping.closed;
  clearInterval(drip);
});
