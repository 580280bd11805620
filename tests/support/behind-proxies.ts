/** Tests of a gateway behind each of the TLS proxies. */

import { afterAll, beforeAll, describe } from 'bun:test';
import type tls from 'node:tls';
import { connect } from './proxy-client.ts';
import { describeWith, LINUX, program } from './requirements.ts';
import { startTlsProxy, TLS_PROXIES, type TlsProxy } from './tls-proxies.ts';
import { ORIGIN, SIGNED_IN, startWorld, type World } from './world.ts';

const BEHIND_PROXY = {
  NODE_ENV: 'production',
  FORWARD_CLIENT_ADDRESS: 'true',
  TRUSTED_PROXIES: '127.0.0.1',
};

export interface BehindProxy {
  readonly world: World;
  readonly proxy: TlsProxy;
}

/** Starts both once for all the tests. */
export function describeBehindProxies(
  what: string,
  tests: (behind: () => BehindProxy, configured: (typeof TLS_PROXIES)[number]) => void,
): void {
  describe.each([...TLS_PROXIES])('$program, as configured in deploy,', (configured) => {
    // On Linux all of 127.0.0.0/8 is this machine, so that clients can have addresses of their own.
    describeWith([program(configured.program), program('openssl'), LINUX], what, () => {
      let world: World;
      let proxy: TlsProxy;
      beforeAll(async () => {
        world = startWorld(BEHIND_PROXY);
        proxy = await startTlsProxy(configured.prepare, world.port);
      }, 60_000);
      afterAll(async () => {
        await proxy[Symbol.asyncDispose]();
        await world[Symbol.asyncDispose]();
      });

      tests(() => ({ world, proxy }), configured);
    });
  });
}

/** Writes the head of a request on a connection from that address; an error of the connection only closes it. */
export function openRequest(
  proxy: TlsProxy,
  localAddress: string,
  requestLine: string,
  headerLines: string,
): tls.TLSSocket {
  const socket = connect(proxy, localAddress, 'http/1.1').on('error', () => {});
  const head = `${requestLine} HTTP/1.1\r\nHost: test\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\n`;
  socket.write(`${head}${headerLines}\r\n\r\n`);
  return socket;
}
