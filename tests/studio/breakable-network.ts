/** The network between a browser and a server, which a test can cut in the middle of a response and restore. */

import { once } from 'node:events';
import net from 'node:net';

/** Passes what comes to `port` on to `serverPort`, both on this machine. */
export async function openNetwork(port: number, serverPort: number) {
  const sockets = new Set<net.Socket>();
  let isCut = false;
  let serverIsUp = Promise.resolve();
  const keep = (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  };
  const endAll = (how: 'destroy' | 'resetAndDestroy') => {
    for (const socket of sockets) socket[how]();
  };
  const listener = net.createServer(async (browser) => {
    if (isCut) return void browser.destroy();
    keep(browser);
    await serverIsUp;
    if (browser.destroyed) return;
    const server = net.connect({ port: serverPort, host: 'localhost' });
    keep(server);
    browser.pipe(server).pipe(browser);
    browser.on('close', () => server.destroy());
    server.on('close', () => browser.end());
  });
  listener.listen({ port, host: 'localhost' });
  await once(listener, 'listening');
  return {
    /** Ends every connection; new ones are fine. */
    break: () => endAll('destroy'),
    /** Resets every connection, which no browser can take for the end of a response. No new one until `repair()`. */
    cut() {
      isCut = true;
      endAll('resetAndDestroy');
    },
    repair() {
      isCut = false;
    },
    /**
     * Lets new connections wait until the server has restarted, as a proxy would. Firefox asks at once when one is
     * refused, and its player hangs at the next seek when ten in a row are.
     */
    async restart(restartServer: () => Promise<void>) {
      serverIsUp = restartServer();
      await serverIsUp;
    },
    async [Symbol.asyncDispose]() {
      endAll('destroy');
      listener.close();
      await once(listener, 'close');
    },
  };
}
