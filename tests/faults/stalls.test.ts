import { describe, expect, it } from 'bun:test';
import net from 'node:net';

const IDLE_SECONDS = 2;

/** What the gateway does with a stream: no timeout until the headers are there, then Bun's. */
function startRelay(upstream: URL) {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: IDLE_SECONDS,
    async fetch(request, server) {
      server.timeout(request, 0);
      const { body } = await fetch(upstream, { decompress: false });
      server.timeout(request, IDLE_SECONDS);
      return new Response(body);
    },
  });
}

/** An upstream whose body the test ends or does not; tells when it is given up. */
function startUpstream(
  pull: (controller: ReadableStreamDefaultController<Uint8Array>) => void | PromiseLike<void>,
) {
  const cancelled = Promise.withResolvers<void>();
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: () => new Response(new ReadableStream({ pull, cancel: () => cancelled.resolve() })),
  });
  return { server, cancelled: cancelled.promise };
}

function connect(port: number | undefined, onData: (socket: net.Socket) => void) {
  const closed = Promise.withResolvers<void>();
  const socket = net.connect(port ?? 0, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  socket.on('data', () => onData(socket));
  socket.on('error', () => {}).on('close', () => closed.resolve());
  return { socket, closed: closed.promise };
}

// The gateway rests on this behaviour of Bun; src/gateway/http/idle-timeout.ts sets the 60 s that it uses.
describe("Bun's per-request timeout, set when the headers are there", () => {
  it('cuts a silent upstream off, and a reader that has stopped, but not one that is slow', async () => {
    const block = new Uint8Array(64 * 1024);
    const silent = startUpstream(async (controller) => {
      controller.enqueue(block);
      await new Promise(() => {});
    });
    const endless = startUpstream((controller) => controller.enqueue(block));
    const toSilent = startRelay(silent.server.url);
    const toEndless = startRelay(endless.server.url);

    const slow = connect(toEndless.port, (socket) => {
      socket.pause();
      setTimeout(() => socket.resume(), 300);
    });
    let slowClosed = false;
    slow.closed.then(() => {
      slowClosed = true;
    });
    const waiting = connect(toSilent.port, () => {});
    const stopped = connect(toEndless.port, (socket) => socket.pause());
    await silent.cancelled;
    await waiting.closed;
    // A paused socket does not notice that it was closed; the upstream does.
    await endless.cancelled;
    expect(slowClosed).toBe(false);
    slow.socket.destroy();
    stopped.socket.destroy();
    for (const server of [toSilent, toEndless, silent.server, endless.server]) await server.stop(true);
  }, 60_000);
});
