import { beforeEach, describe, expect, it, jest, spyOn } from 'bun:test';
import { once } from 'node:events';
import net from 'node:net';
import { type BodyMemory, BodyWatch, type WatchedBody } from '../../src/gateway/admission/body-watch.ts';
import { connectionKey, sendQueues } from '../../src/gateway/admission/send-queues.ts';
import { eventually } from '../support/eventually.ts';
import { pass } from '../support/passing-time.ts';
import { itWith, LINUX } from '../support/requirements.ts';

beforeEach(() => void jest.useFakeTimers());

const [own, others] = [1n, 2n].map((key) => ({ key, calls: 1, generations: 0, bytes: 0 }));

/** A watch of bodies, each of which waits for its reader since it was added. */
function watching() {
  jest.clearAllTimers();
  const watch = new BodyWatch();
  const cut: string[] = [];
  const add = (
    name: string,
    { use, isExpendable = true, fallBehind = () => true, ...changed }: Partial<WatchedBody & BodyMemory> = {},
  ) => {
    const unused = { tryReserveRead: () => true, fallBehind };
    const ignored = { onRead: () => {}, catchUp: () => {}, giveBodyUp: () => {} };
    const body = {
      ...({ waitsFor: 'reader', waitsSince: watch.now, takenAt: watch.now } as const),
      connection: undefined,
      isComplete: false,
      memory: { watch, use, isExpendable, ...unused, ...ignored },
      check: () => {},
      noteQueue: () => {},
      cutOff: () => {
        cut.push(name);
        watch.remove(body);
      },
      ...changed,
    };
    watch.add(body);
    return body;
  };
  return { watch, cut, add };
}

describe('room', () => {
  it('is made by public bodies before those of users, longest still first, and last by those who lack memory', async () => {
    const { watch, cut, add } = watching();
    add('of a user, starved', { use: own, waitsFor: 'memory' });
    add('of a user', { use: others, takenAt: 100 });
    add('of a user, oldest', { use: own });
    add('public');
    await pass(100);
    add('public, later');
    await pass(30_000);
    add('whose reader has read lately');
    expect(watch.makeRoom(() => true)).toBeTrue();
    expect(cut).toEqual([]);
    expect(watch.makeRoom(() => cut.length === 1)).toBeTrue();
    expect(cut).toEqual(['public']);
    // No more than two in a tick.
    expect(watch.makeRoom(() => false)).toBeFalse();
    expect(watch.makeRoom(() => false)).toBeFalse();
    expect(cut.slice(1)).toEqual(['public, later']);
    await pass(100);
    expect(watch.makeRoom(() => false)).toBeFalse();
    await pass(100);
    expect(watch.makeRoom(() => false)).toBeFalse();
    expect(cut.slice(2)).toEqual(['of a user, oldest', 'of a user', 'of a user, starved']);
  });

  it('is made by nobody who reads, waits for the upstream, has changed something or belongs to others', async () => {
    const { watch, cut, add } = watching();
    const stranger = add('of a stranger').memory;
    const reader = add('reads');
    add('waits for the upstream', { waitsFor: 'upstream' });
    add('has changed something', { isExpendable: false });
    add('own', { use: own });
    add('of others', { use: others });
    await pass(9900);
    expect(watch.makeRoom(() => cut.length > 0)).toBeFalse();
    await pass(20_100);
    reader.takenAt = watch.now;
    // Strangers take nothing from users, and a session beyond its share nothing from another.
    expect(watch.makeRoom(() => false, stranger)).toBeFalse();
    expect(cut).toEqual([]);
    expect(watch.makeRoom(() => false, undefined, own)).toBeFalse();
    expect(cut).toEqual(['own']);
  });
});

it('beyond what may be charged, those are cut off first that are behind for longest, and found no memory', async () => {
  const { watch, cut, add } = watching();
  const fallBehind = () => false;
  add('has memory');
  add('has changed something', { isExpendable: false, fallBehind });
  add('waits for the upstream', { waitsFor: 'upstream', fallBehind });
  add('has been sent', { isComplete: true, fallBehind });
  add('behind', { use: own, fallBehind });
  await pass(300);
  add('behind for less long', { use: own, fallBehind });
  await pass(600);
  // On a busy machine, everybody is behind for a moment.
  watch.cutOffBehind(() => false);
  expect(cut).toEqual([]);
  await pass(400);
  watch.cutOffBehind(() => cut.length > 0);
  expect(cut).toEqual(['behind']);
  watch.cutOffBehind(() => false);
  expect(cut).toEqual(['behind', 'behind for less long']);
});

it('readers that wait are looked after every 4 s', async () => {
  using _files = spyOn(Bun, 'file').mockReturnValue(
    Object.assign(Bun.file('/proc'), { text: async () => ':0001 0100007F:0002 01 00000000:' }),
  );
  const { add } = watching();
  const looks: number[] = [];
  const connection = { localPort: 1, address: '127.0.0.1', port: 2 };
  add('waits', { connection, noteQueue: (_, now) => void looks.push(now) });
  // Where the system does not tell, the writes alone count.
  add('is not listed', { connection: { ...connection, port: 3 }, noteQueue: () => looks.push(0) });
  await pass(2500);
  // Two looks come before a guest counts as standing still, whenever it has begun to wait.
  add('waits later', { connection, noteQueue: (_, now) => void looks.push(-now) });
  for (let tick = 0; tick < 80; tick++) await pass(100);
  expect(looks).toEqual([4000, -4000, 8000, -8000]);
});

// Where there is IPv6, a server without a host is in its table. What the watch makes of it: faults/streamed-bodies.
for (const [table, host] of [['tcp', '127.0.0.1'], ['tcp6']])
  itWith([LINUX], `the kernel's ${table} tells how much of what was sent waits for its reader`, async () => {
    using stack = new DisposableStack();
    jest.useRealTimers();
    const server = net.createServer((socket) => socket.on('error', () => {}).write(Buffer.alloc(16_000_000)));
    stack.defer(() => void server.close());
    await once(server.listen(0, host), 'listening');
    const port = Number(Object(server.address()).port);
    const client = net.connect(port, '127.0.0.1').pause();
    stack.defer(() => void client.destroy());
    await once(client, 'connect');
    const { localPort: clientPort = 0 } = client;
    const key = connectionKey({ localPort: port, address: '127.0.0.1', port: clientPort });
    const queued = async () => (await sendQueues()).get(key);
    await eventually(async () => Number(await queued()) > 10_000, 'the queue to fill');
    client.resume();
    await eventually(async () => (await queued()) === 0, 'the queue to drain');
  });

it.each([
  ['127.0.0.1', '0100007F'],
  ['::ffff:10.0.0.1', '0100000A'],
  ['2001:db8::1', 'B80D0120000000000000000001000000'],
  ['::1', '00000000000000000000000001000000'],
])('the address %s is found as the kernel writes it', (address, listed) => {
  expect(connectionKey({ localPort: 80, address, port: 258 })).toBe(`0050 ${listed}:0102`);
});
