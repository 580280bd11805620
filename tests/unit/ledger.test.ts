import { beforeEach, describe, expect, it, jest, spyOn } from 'bun:test';
import { totalmem } from 'node:os';
import { openChargedMemory } from '../../src/gateway/admission/charged-memory.ts';
import { LADDER } from '../../src/gateway/admission/ladder.ts';
import { Ledger } from '../../src/gateway/admission/ledger.ts';
import { Pool } from '../../src/gateway/admission/pool.ts';
import { pass, settle } from '../support/passing-time.ts';
import { createFolder } from '../support/temporary-folder.ts';

const MiB = 1024 ** 2;

beforeEach(() => void jest.useFakeTimers());

// What has room in it beside what is reserved: unit/admission.
it('a ledger counts what the kernel cannot have charged yet, and as free what it frees', async () => {
  const kernel = { charges: 500 };
  const ledger = new Ledger(1000, () => kernel.charges);
  ledger.take(400);
  expect(ledger.charged()).toBe(500);
  ledger.take(30);
  ledger.expected += 20;
  expect(ledger.charged()).toBe(530);
  await pass(10);
  expect(ledger.charged()).toBe(520);
  ledger.release(300);
  kernel.charges = 200;
  expect(ledger.charged()).toBe(520);
  await pass(10);
  expect(ledger.charged()).toBe(220);
  const { user, session } = LADDER;
  expect([655, 656].map((bytes) => ledger.fits(user, bytes))).toEqual([true, false]);
  // Nobody is signed out for garbage.
  expect([870, 871].map((bytes) => ledger.fits(session, bytes))).toEqual([true, false]);
});

it('each rung of the ladder has the room of those before it, and more', () => {
  const shares = Object.values(LADDER).map(({ share }) => share);
  expect(shares).toEqual(shares.toSorted());
  expect([new Set(shares).size, shares.at(-1)]).toEqual([shares.length, 1]);
});

describe('the line of a rung', () => {
  /** All of the ledger is in use; `ended` has those that were served, or refused. */
  function start() {
    const ledger = new Ledger(1000);
    ledger.take(ledger.limit);
    const ended: string[] = [];
    const reserve = (name: string, bytes: number, patienceMs = 1000) => {
      const note = (prefix: string) => () => void ended.push(prefix + name);
      void ledger.reserve(LADDER.session, bytes, patienceMs).then(note(''), note('not '));
    };
    const release = (bytes: number) => {
      ledger.release(bytes);
      return settle();
    };
    return { ledger, ended, reserve, release };
  }

  it('serves in order of arrival: nobody passes one who needs more, and no newcomer those who wait', async () => {
    const { ended, reserve, release } = start();
    reserve('large', 10);
    reserve('small', 1);
    await release(9);
    reserve('newcomer', 2);
    await settle();
    expect(ended).toEqual([]);
    await release(2);
    expect(ended).toEqual(['large', 'small']);
    await release(2);
    expect(ended.slice(2)).toEqual(['newcomer']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('keeps no room for one who has given up or disconnected', async () => {
    const { ledger, ended, reserve, release } = start();
    const client = new AbortController();
    const gone = ledger.wait(LADDER.session, () => 'full', Number.POSITIVE_INFINITY, client.signal);
    reserve('impatient', 10);
    reserve('patient', 1, 2000);
    reserve('without patience', 1, 0);
    client.abort();
    expect(await gone).toBeFalse();
    expect(await ledger.wait(LADDER.session, () => 'served', 1000, client.signal)).toBeFalse();
    expect(ended).toEqual(['not without patience']);
    await pass(1000);
    await release(20);
    expect(ended.slice(1)).toEqual(['not impatient', 'patient']);
    expect([ledger.inUse, ledger.refused, jest.getTimerCount()]).toEqual([981, 2, 0]);
  });

  it('is passed by those who lack no memory, but something else', async () => {
    const { ledger, ended, reserve, release } = start();
    void ledger.wait(LADDER.session, () => 'later', 1000);
    reserve('next', 1);
    await release(1);
    expect(ended).toEqual(['next']);
  });
});

it('a pool lets 500 wait, because each keeps its memory meanwhile, and serves them in order', async () => {
  const pool = new Pool('read', 1, 500);
  const ended: string[] = [];
  for (let waiting = -1; waiting <= 500; waiting++) {
    void pool.take(1000).then(
      () => ended.push(`${waiting}`),
      () => ended.push(`not ${waiting}`),
    );
  }
  await settle();
  expect(ended).toEqual(['-1', 'not 500']);
  for (let served = 0; served < 2; served++) pool.release();
  await settle();
  expect([ended.slice(2), pool.inUse, pool.refused]).toEqual([['0', '1'], 1, 1]);
  await pass(1000);
  expect(pool.refused).toBe(499);
});

it('what the kernel charges contains what was just taken, and is less than the machine has', () => {
  const read = openChargedMemory(totalmem());
  const isContained = () => {
    const before = read();
    const taken = Buffer.alloc(64 * MiB, 'a');
    return read() - before > taken.length / 2;
  };
  // Other processes may give as much back at the same moment.
  expect(Array.from({ length: 20 }).some(isContained)).toBeTrue();
  expect(read()).toBeWithin(20 * MiB, totalmem());
});

const V1 = 'sys/fs/cgroup/memory/pods';

it.each([
  [
    'version 2 of cgroups, which charges sockets with everything else',
    {
      'proc/self/cgroup': '0::/user/app\n',
      'sys/fs/cgroup/user/app/memory.max': '256\n',
      'sys/fs/cgroup/user/app/memory.current': '200\n',
      'sys/fs/cgroup/user/app/memory.stat': 'anon 110\ninactive_file 30\nactive_file 50\nsock 10\n',
    },
    120,
  ],
  [
    'version 1, where a limit of the parent counts, and sockets are apart',
    {
      'proc/self/cgroup': '7:cpu:/\n6:memory:/pods/one\n',
      [`${V1}/one/memory.limit_in_bytes`]: '9223372036854771712\n',
      [`${V1}/memory.limit_in_bytes`]: '256\n',
      [`${V1}/memory.usage_in_bytes`]: '200\n',
      [`${V1}/memory.kmem.tcp.usage_in_bytes`]: '25\n',
      [`${V1}/memory.stat`]: 'inactive_file 1\ntotal_inactive_file 30\ntotal_active_file 50\n',
    },
    145,
  ],
  [
    'the process and the sockets of the machine, where no cgroup has a limit',
    { 'proc/net/sockstat': 'sockets: used 9\nTCP: inuse 3 orphan 0 tw 0 alloc 5 mem 5000\n' },
    100 + 5000 * 4096,
  ],
  ['the process alone, where the system tells nothing', {}, 100],
])('what the kernel charges is read from %s', async (_, files, charged) => {
  await using system = await createFolder();
  for (const [file, text] of Object.entries(files)) await Bun.write(`${system.path}/${file}`, text);
  using _memory = spyOn(process.memoryUsage, 'rss').mockReturnValue(100);
  expect(openChargedMemory(1024, system.path)()).toBe(charged);
});
