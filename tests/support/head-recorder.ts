/** A gateway in front of an upstream that records the head of each request byte for byte, whatever it asks for. */

import { startWorld, type World } from './world.ts';

export function startHeadRecorder(): { world: World; received: string[] } {
  const received: string[] = [];
  const upstream = Bun.listen<{ head: string }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { head: '' };
      },
      data(socket, chunk) {
        socket.data.head += chunk.toString('latin1');
        if (!socket.data.head.includes('\r\n\r\n')) return;
        received.push(socket.data.head);
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfound');
      },
    },
  });
  const world = startWorld({ UPSTREAM_URL: `http://127.0.0.1:${upstream.port}/base` });
  const stop = async () => {
    await world[Symbol.asyncDispose]();
    upstream.stop(true);
  };
  return { world: { ...world, [Symbol.asyncDispose]: stop }, received };
}
