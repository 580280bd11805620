/** The network between a browser and a server, which a test can cut in the middle of a response and restore. */

import { once } from 'node:events';
import net from 'node:net';

export interface BreakableNetwork extends AsyncDisposable {
  /** Ends every connection; new ones are fine. */
  break(): void;
  /** The same with a reset, which no browser can take for the end of a response. */
  reset(): void;
  /** Ends every connection, and new ones are refused until `repair()`. */
  cut(): void;
  repair(): void;
}

/** Passes what comes to `port` on to `serverPort`, both on this machine. */
export async function openNetwork(port: number, serverPort: number): Promise<BreakableNetwork> {
  const sockets = new Set<net.Socket>();
  let isCut = false;
  const keep = (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  };
  const listener = net.createServer((browser) => {
    if (isCut) return void browser.destroy();
    const server = net.connect({ port: serverPort, host: 'localhost' });
    keep(browser);
    keep(server);
    browser.pipe(server).pipe(browser);
    browser.on('close', () => server.destroy());
    server.on('close', () => browser.end());
  });
  listener.listen({ port, host: 'localhost' });
  await once(listener, 'listening');
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    break: breakAll,
    reset() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    cut() {
      isCut = true;
      breakAll();
    },
    repair() {
      isCut = false;
    },
    async [Symbol.asyncDispose]() {
      breakAll();
      listener.close();
      await once(listener, 'close');
    },
  };
}
