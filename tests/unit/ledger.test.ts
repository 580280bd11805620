import { beforeEach, describe, expect, it, jest, spyOn } from 'bun:test';
import { totalmem } from 'node:os';
import { Budget } from '../../src/gateway/admission/budget.ts';
import { openChargedMemory } from '../../src/gateway/admission/charged-memory.ts';
import { Ledger } from '../../src/gateway/admission/ledger.ts';
import { pass, settle } from '../support/passing-time.ts';
import { createFolder } from '../support/temporary-folder.ts';

const MiB = 1024 ** 2;

beforeEach(() => void jest.useFakeTimers());

// What has room in it beside what is reserved: unit/admission.
it('a ledger counts what the kernel cannot have charged yet, and as free what it frees or is expected to', async () => {
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
  ledger.expectFree(250);
  expect(ledger.charged()).toBe(270);
  await pass(10);
  expect(ledger.charged()).toBe(220);
  expect([530, 531].map((amount) => ledger.fitsCharged(amount, 3 / 4))).toEqual([true, false]);
});

describe('a budget', () => {
  /** All of it is in use; `ended` has those that were served, or refused. */
  function start(most?: number) {
    const budget = new Budget(1000, most);
    budget.take(budget.limit);
    const ended: string[] = [];
    const reserve = (name: string, amount: number, patienceMs = 1000) => {
      const note = (prefix: string) => () => void ended.push(prefix + name);
      void budget.reserve(amount, patienceMs).then(note(''), note('not '));
    };
    const release = (amount: number) => {
      budget.release(amount);
      return settle();
    };
    return { budget, ended, reserve, release };
  }

  it('serves in order of arrival: nobody passes one who needs more', async () => {
    const { ended, reserve, release } = start();
    reserve('large', 10);
    reserve('small', 1);
    reserve('last', 2);
    await release(9);
    expect(ended).toEqual([]);
    await release(2);
    expect(ended).toEqual(['large', 'small']);
    await release(2);
    expect(ended.slice(2)).toEqual(['last']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('keeps neither a place nor room for one who has given up', async () => {
    const { budget, ended, reserve, release } = start(3);
    reserve('impatient', 10, 1000);
    reserve('patient', 1, 2000);
    reserve('third', 1, 1500);
    reserve('one too many', 1);
    reserve('without patience', 1, 0);
    await settle();
    expect(ended).toEqual(['not one too many', 'not without patience']);
    await pass(1000);
    reserve('next', 1, 2000);
    await release(20);
    expect(ended.slice(2)).toEqual(['not impatient', 'patient', 'third', 'next']);
    expect([budget.inUse, budget.refused]).toEqual([983, 3]);
  });

  it('lets 500 wait, because each keeps its memory meanwhile, and serves all from one release', async () => {
    const { budget, ended, reserve, release } = start();
    for (let waiting = 0; waiting < 501; waiting++) reserve(`${waiting}`, 1);
    await settle();
    expect(ended).toEqual(['not 500']);
    await release(500);
    expect([ended.length, budget.inUse]).toEqual([501, 1000]);
  });
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
