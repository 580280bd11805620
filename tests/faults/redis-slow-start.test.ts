import { describe, expect, it } from 'bun:test';
import { RedisConnection } from '../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../src/gateway/refresh/redis-store.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { newLedger } from '../support/refresh-coordinator.ts';

const GREETING = '%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n';
const WRITTEN = '_\r\n';

describe('the replay store', () => {
  it('does not take a first connection that it has given up for Redis being back', async () => {
    const greeting = Promise.withResolvers<void>();
    /** Speaks as much of RESP3 as the store needs; its greeting on the first connection is held back. */
    await using redis = await startRawUpstream((socket, first) => {
      const held = redis.connections === 1 ? greeting.promise : Promise.resolve();
      const respond = async (command: string) => {
        const isGreeting = command.includes('HELLO');
        if (isGreeting) await held;
        socket.write(isGreeting ? GREETING : WRITTEN.repeat(command.split('EVAL').length - 1));
      };
      void respond(first);
      socket.on('data', (data) => respond(data.toString()));
    });
    const heard: string[] = [];
    const isBack = Promise.withResolvers<void>();
    const observer = {
      onDown: () => heard.push('down'),
      onUp: () => {
        heard.push(`up, by connection ${redis.connections}`);
        isBack.resolve();
      },
    };
    const store = new RedisReplayStore(
      new RedisConnection(redis.url.replace('http', 'redis'), observer),
      newLedger(),
    );
    await store.get('key');
    expect(heard).toEqual(['down']);
    greeting.resolve();
    await isBack.promise;
    expect(heard).toEqual(['down', 'up, by connection 2']);
  });
});
