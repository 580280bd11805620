import { describe, expect, it } from 'bun:test';
import net from 'node:net';
import { systemClock } from '../../../src/gateway/refresh/clock.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import { eventually } from '../../support/eventually.ts';
import { newLedger } from '../../support/refresh-coordinator.ts';

const BATCH = 500;
const LIFETIMES = { workedMs: 283_000, claimedMs: 23_000, unknownMs: 30_000 };
const SECOND_KEY = 'music-gateway:issued:';
const KEYS = new RegExp(`music-gateway:refresh:([\\w-]+)\r\n\\$\\d+\r\n${SECOND_KEY}`, 'g');
/** Reconnects after 20 ms instead of a second. */
const clock = { ...systemClock, sleep: (ms: number) => Bun.sleep(ms / 50) };

/** What arrived on one connection: the keys of the commands in their order, and how often the server replied. */
interface Heard {
  readonly keys: string[];
  roundTrips: number;
}

/**
 * Speaks as much of RESP3 as the store needs, and replies only to full batches and after the last record. Ends the first
 * connection at once, so that the store counts it as down, and the second when it has heard `cutAfter` keys.
 */
async function startCountingRedis(records: number, cutAfter = Number.POSITIVE_INFINITY) {
  const connections: Heard[] = [];
  const server = net.createServer((socket) => {
    const heard: Heard = { keys: [], roundTrips: 0 };
    const endsAfter = [0, cutAfter][connections.push(heard) - 1] ?? Number.POSITIVE_INFINITY;
    let [rest, replied] = ['', 0];
    socket.on('error', () => {});
    socket.on('data', (data) => {
      if (data.includes('HELLO')) socket.write('%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n');
      rest += data.toString('latin1');
      const arrived = Array.from(rest.matchAll(KEYS), ([, key = '']) => key);
      const keys = arrived.filter((key) => key !== 'probe');
      socket.write('_\r\n'.repeat(arrived.length - keys.length));
      heard.keys.push(...keys);
      rest = rest.slice(Math.max(0, rest.lastIndexOf(SECOND_KEY)));
      if (heard.keys.length >= endsAfter) return socket.destroySoon();
      const waiting = heard.keys.length - replied;
      if (waiting === 0 || (waiting < BATCH && heard.keys.length < records)) return;
      socket.write('_\r\n'.repeat(waiting));
      replied = heard.keys.length;
      heard.roundTrips++;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return { port, connections, [Symbol.dispose]: () => void server.close() };
}

/** A store that has lost its first connection. */
async function storeWithout(redis: { readonly port: number }) {
  let isDown = false;
  const observer = { onDown: () => (isDown = true), onUp: () => (isDown = false) };
  const connection = new RedisConnection(`redis://127.0.0.1:${redis.port}`, observer, clock);
  await eventually(() => isDown, 'the first connection to end');
  return { connection, store: new RedisReplayStore(connection, newLedger()) };
}

describe('an instance whose Redis is back', () => {
  it('sends 50,000 missed records in 100 round trips before it uses Redis', async () => {
    using redis = await startCountingRedis(50_000);
    const { connection, store } = await storeWithout(redis);
    for (let index = 0; index < 50_000; index++) {
      await store.add(`renewed-${index}`, { kind: 'renewed', sealedPair: 'x' }, 280_000);
    }
    await eventually(() => connection.isUp, 'Redis to count as up');
    const heard = redis.connections.at(-1);
    expect(heard?.roundTrips).toBe(100);
    expect(new Set(heard?.keys)).toHaveLength(50_000);
  });

  it('sends all of them again after a failure, those that may be made up last', async () => {
    const [renewed, madeUp] = [1000, 4000];
    using redis = await startCountingRedis(renewed + madeUp, renewed + madeUp - 100);
    const { connection, store } = await storeWithout(redis);
    for (let index = 0; index < madeUp; index++) {
      await store.end(`made-up-${index}`, { kind: 'ended', clearsFrom: 1 }, LIFETIMES);
    }
    for (let index = 0; index < renewed; index++) {
      await store.add(`renewed-${index}`, { kind: 'renewed', sealedPair: 'x' }, 280_000);
    }
    await eventually(() => connection.isUp, 'Redis to count as up');
    expect(redis.connections.length).toBeGreaterThan(2);
    const keys = redis.connections.at(-1)?.keys ?? [];
    expect(new Set(keys)).toHaveLength(renewed + madeUp);
    expect(keys.slice(0, renewed).every((key) => key.startsWith('renewed-'))).toBe(true);
  });
});
