/** Bun's idle timeout, which src/gateway/gateway.ts sets: no clock of the gateway's own sees a head before it is complete. */

import { expect, it } from 'bun:test';
import { RawConnection } from '../support/raw-http.ts';

it('cuts off a head that drips', async () => {
  const fetch = () => new Response();
  await using server = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 2, fetch });
  const client = new RawConnection(server.port ?? 0);
  await client.send('GET / HTTP/1.1\r\nHost: x\r\n');
  const drip = setInterval(() => client.send('x'), 100);
  await client.closed;
  clearInterval(drip);
  expect(client.received).toBe('');
});
