/** Stands before a server of this machine, and drops connections as NAT and firewalls do: without a word. */

import net from 'node:net';

export async function startSwallowingRelay(serverPort: number) {
  let target = serverPort;
  const sockets = new Set<net.Socket>();
  let dropped = new WeakSet<net.Socket>();
  const join = (from: net.Socket, to: net.Socket) => {
    sockets.add(from);
    from.on('data', (data) => dropped.has(from) || to.write(data));
    from.on('error', () => {});
    from.on('close', () => {
      sockets.delete(from);
      if (!dropped.has(from)) to.destroy();
    });
  };
  const server = net.createServer((client) => {
    const onward = net.connect(target, '127.0.0.1');
    join(client, onward);
    join(onward, client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: Number(Object(server.address()).port),
    /** Nothing passes any more on the connections that there are; new ones lead to this port. */
    swallow(nextPort = target) {
      target = nextPort;
      dropped = new WeakSet(sockets);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
