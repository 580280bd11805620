import { describe, expect, it } from 'bun:test';
import net from 'node:net';

const IDLE_SECONDS = 2;
const LOCAL = { port: 0, hostname: '127.0.0.1' };
const BLOCK = new Uint8Array(64 * 1024);

/** An upstream whose body the test supplies, and a relay that does with it what the gateway does. */
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
  const stop = () => Promise.all([relay.stop(true), upstream.stop(true)]);
  return {
    port: relay.port ?? 0,
    cancelled: cancelled.promise,
    [Symbol.asyncDispose]: async () => void (await stop()),
  };
}

function connect(port: number, onData: (socket: net.Socket) => void) {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const socket = net.connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  socket.on('data', () => onData(socket));
  socket.on('error', () => {}).on('close', () => resolve());
  return { socket, closed };
}

// The gateway relies on this behaviour of Bun; src/gateway/http/idle-timeout.ts sets the 60 s that it uses.
describe("Bun's per-request timeout, set when the headers are there,", () => {
  it('cuts off a silent upstream and a reader that has stopped, but not one that is slow', async () => {
    await using silent = startRelayed(async (controller) => {
      controller.enqueue(BLOCK);
      await new Promise(() => {});
    });
    await using endless = startRelayed((controller) => controller.enqueue(BLOCK));
    const slow = connect(endless.port, (socket) => {
      socket.pause();
      setTimeout(() => socket.resume(), 300);
    });
    const waiting = connect(silent.port, () => {});
    const stopped = connect(endless.port, (socket) => socket.pause());
    await Promise.all([silent.cancelled, waiting.closed]);
    // A paused socket does not notice that it was closed; the upstream does.
    await endless.cancelled;
    expect(await Promise.race([slow.closed.then(() => 'closed'), Bun.sleep(0).then(() => 'open')])).toBe(
      'open',
    );
    slow.socket.destroy();
    stopped.socket.destroy();
  }, 60_000);
});
