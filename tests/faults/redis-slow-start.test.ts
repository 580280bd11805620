import { expect, it } from 'bun:test';
import net from 'node:net';
import { RedisConnection } from '../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../src/gateway/refresh/redis-store.ts';

/** Speaks as much of RESP3 as the store needs; its greeting on the first connection is held back. */
function startSlowRedis(greeting: Promise<void>) {
  let connections = 0;
  const connected = () => connections;
  const server = net.createServer((socket) => {
    const held = connections++ === 0 ? greeting : Promise.resolve();
    socket.on('error', () => {});
    socket.on('data', async (data) => {
      const isGreeting = data.toString().includes('HELLO');
      if (isGreeting) await held;
      socket.write(isGreeting ? '%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n' : '_\r\n');
    });
  });
  const { promise, resolve } = Promise.withResolvers<{
    server: net.Server;
    port: number;
    connected: () => number;
  }>();
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    resolve({ server, port: typeof address === 'object' && address ? address.port : 0, connected });
  });
  return promise;
}

it('a first connection that comes after it was given up is not taken for Redis being back', async () => {
  const greeting = Promise.withResolvers<void>();
  const { server, port, connected } = await startSlowRedis(greeting.promise);
  const heard: string[] = [];
  const isBack = Promise.withResolvers<void>();
  const observer = {
    onDown: () => heard.push('down'),
    onUp: () => {
      heard.push(`up, by connection ${connected()}`);
      isBack.resolve();
    },
  };
  const store = new RedisReplayStore(new RedisConnection(`redis://127.0.0.1:${port}`, observer));
  await store.add('key', { kind: 'rejected' }, 1000);
  expect(heard).toEqual(['down']);
  greeting.resolve();
  await isBack.promise;
  expect(heard).toEqual(['down', 'up, by connection 2']);
  server.close();
});
