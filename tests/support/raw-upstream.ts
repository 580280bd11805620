/** An upstream on a raw socket, for responses that no HTTP server would give. */

import net from 'node:net';

/** Calls `respond` on each connection with the first of its request, one character per byte. */
export async function startRawUpstream(respond: (socket: net.Socket, request: string) => void) {
  const sockets = new Set<net.Socket>();
  let connections = 0;
  const server = net.createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.once('data', (data) => respond(socket, data.toString('latin1')));
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${Object(server.address()).port}`,
    /** How many connections have been opened. */
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
