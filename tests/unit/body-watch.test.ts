import { beforeEach, describe, expect, it, jest } from 'bun:test';
import { once } from 'node:events';
import net from 'node:net';
import { type BodyMemory, BodyWatch, type WatchedBody } from '../../src/gateway/admission/body-watch.ts';
import { connectionKey, sendQueues } from '../../src/gateway/admission/send-queues.ts';
import { pass } from '../support/passing-time.ts';

beforeEach(() => void jest.useFakeTimers());

const [own, others] = [1n, 2n].map((key) => ({ key, calls: 1, generations: 0, bytes: 0 }));

/** A watch of bodies, each of which waits for its reader since it was added. */
function watching() {
  jest.clearAllTimers();
  const bodies = new BodyWatch();
  const cut: string[] = [];
  const add = (
    name: string,
    { session, isExpendable = true, ...changed }: Partial<WatchedBody & BodyMemory> = {},
  ) => {
    let queued = 0;
    const unused = { tryReserveRead: () => true, fallBehind: () => true };
    const ignored = { onRead: () => {}, onArrived: () => {}, catchUp: () => {}, giveBodyUp: () => {} };
    const body = {
      ...({ waitsFor: 'reader', waitsSince: bodies.now, readAt: bodies.now } as const),
      connection: undefined,
      memory: { bodies, session, isExpendable, ...unused, ...ignored },
      check: () => {},
      noteQueue: (bytes: number, now: number) => {
        if (bytes < queued) body.readAt = now;
        queued = bytes;
      },
      cutOff: () => {
        cut.push(name);
        bodies.remove(body);
      },
      ...changed,
    };
    bodies.add(body);
    return body;
  };
  return { bodies, cut, add };
}

describe('room', () => {
  it('is made by public bodies before those of users, and by those that have stood still longest', async () => {
    const { bodies, cut, add } = watching();
    add('of a user, oldest', { session: own });
    add('public');
    await pass(100);
    add('of a user', { session: others });
    add('public, later');
    await pass(10_000);
    add('whose reader has read lately');
    expect(bodies.makeRoom(() => cut.length === 3)).toBeTrue();
    expect(cut).toEqual(['public', 'public, later', 'of a user, oldest']);
    expect(bodies.makeRoom(() => false)).toBeFalse();
    expect(cut.slice(3)).toEqual(['of a user']);
  });

  it('is made by nobody who reads, waits for the upstream, has changed something or belongs to others', async () => {
    const { bodies, cut, add } = watching();
    const stranger = add('of a stranger').memory;
    const reader = add('reads');
    add('waits for the upstream', { waitsFor: 'upstream' });
    add('has changed something', { isExpendable: false });
    add('own', { session: own });
    add('of others', { session: others });
    await pass(9900);
    expect(bodies.makeRoom(() => cut.length > 0, stranger)).toBeFalse();
    reader.noteQueue(2, bodies.now);
    reader.noteQueue(1, bodies.now);
    await pass(100);
    // Strangers take nothing from users, and a session beyond its share nothing from another.
    expect(bodies.makeRoom(() => false, stranger)).toBeFalse();
    expect(cut).toEqual([]);
    expect(bodies.makeRoom(() => false, undefined, own)).toBeFalse();
    expect(cut).toEqual(['own']);
  });

  it('needs no body when there is some', async () => {
    const { bodies, cut, add } = watching();
    add('stands still');
    await pass(20_000);
    expect(bodies.makeRoom(() => true)).toBeTrue();
    expect(cut).toEqual([]);
  });
});

it('a queue in the kernel that has become shorter counts as reading, and one that has not does not', async () => {
  const { add } = watching();
  const server = net
    .createServer((socket) => socket.on('error', () => {}).write(Buffer.alloc(16_000_000)))
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const clients = [net.connect(port, '127.0.0.1'), net.connect(port, '127.0.0.1')];
  await Promise.all(clients.map((client) => once(client, 'connect')));
  for (const client of clients) client.pause();
  const keys = clients.map(({ localPort = 0 }) => connectionKey(port, localPort));
  const lengths = async () => {
    const queues = await sendQueues();
    return keys.map((key) => queues.get(key) ?? 0);
  };
  let full = [0, 0];
  for (let looks = 0; looks < 20; looks++) {
    const now = await lengths();
    if (now.some((length, index) => length === 0 || length !== full[index])) looks = 0;
    full = now;
  }
  const [reader, other] = keys.map((connection) => add('', { connection }));
  for (let look = 0; look < 2; look++) {
    await pass(4000);
    await lengths();
  }
  expect([reader?.readAt, other?.readAt]).toEqual([0, 0]);
  clients[0]?.resume();
  // It may grow before it shrinks.
  while ((await lengths())[0] !== 0);
  await pass(4000);
  while (reader?.readAt === 0) await lengths();
  expect([reader?.readAt, other?.readAt]).toEqual([12_000, 0]);
  for (const client of clients) client.destroy();
  server.close();
});
