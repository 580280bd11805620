import { beforeEach, describe, expect, it, jest, spyOn } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import { openChargedMemory } from '../../src/gateway/admission/charged-memory.ts';
import { Ledger } from '../../src/gateway/admission/ledger.ts';
import { WaitingLine } from '../../src/gateway/admission/waiting-line.ts';
import { pass, settle } from '../support/passing-time.ts';

const MiB = 1024 ** 2;

beforeEach(() => void jest.useFakeTimers());

describe('a ledger', () => {
  /** A ledger of 1000 bytes, whose kernel charges so much. */
  function start(charges: number) {
    const kernel = { charges, readings: 0 };
    const ledger = new Ledger(1000, () => {
      kernel.readings++;
      return kernel.charges;
    });
    return { kernel, ledger };
  }

  it('counts what the kernel cannot have charged yet: what is expected, and what was taken since', async () => {
    const { ledger, kernel } = start(500);
    ledger.take(100);
    expect(ledger.charged()).toBe(500);
    ledger.take(30);
    ledger.expected += 20;
    expect(ledger.charged()).toBe(530);
    await pass(10);
    expect([ledger.charged(), kernel.readings]).toEqual([520, 2]);
  });

  it('does not count what was released as free before the kernel does, unless it is expected to be', async () => {
    const { ledger, kernel } = start(500);
    ledger.take(400);
    expect(ledger.charged()).toBe(500);
    ledger.release(300);
    kernel.charges = 200;
    expect(ledger.charged()).toBe(500);
    ledger.expectFree(250);
    expect(ledger.charged()).toBe(250);
    await pass(10);
    expect(ledger.charged()).toBe(200);
  });

  it.each([
    ['reserved', 700, 0],
    ['charged', 0, 700],
  ])('has room for what can wait beside what is %s', (_, reserved, charges) => {
    const { ledger } = start(charges);
    ledger.take(reserved);
    expect([50, 51].map((amount) => ledger.fitsCharged(amount, 3 / 4))).toEqual([true, false]);
    expect(ledger.fits(300)).toBeTrue();
  });
});

describe('a waiting line', () => {
  /** A line for three, in which each waits until there is enough for it. */
  function start() {
    const line = new WaitingLine(3);
    const state = { free: 0 };
    const ended: string[] = [];
    const wait = (name: string, amount: number, patienceMs = 1000) => {
      const attempt = () => {
        const fits = state.free >= amount;
        if (fits) state.free -= amount;
        return fits;
      };
      void line.wait(attempt, patienceMs).then((succeeded) => ended.push(`${name} ${succeeded}`));
    };
    const free = (amount: number) => {
      state.free += amount;
      line.serve();
      return settle();
    };
    return { ended, state, wait, free };
  }

  it('serves in order of arrival: nobody passes one who needs more', async () => {
    const { ended, wait, free } = start();
    wait('large', 10);
    wait('small', 1);
    wait('last', 2);
    await free(9);
    expect(ended).toEqual([]);
    await free(2);
    expect(ended).toEqual(['large true', 'small true']);
    await free(2);
    expect(ended.slice(2)).toEqual(['last true']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('keeps neither a place nor room for one who has given up', async () => {
    const { ended, state, wait, free } = start();
    wait('impatient', 10, 1000);
    wait('patient', 1, 2000);
    wait('third', 1, 1500);
    wait('one too many', 1);
    wait('without patience', 1, 0);
    await settle();
    expect(ended).toEqual(['one too many false', 'without patience false']);
    await pass(1000);
    wait('next', 1, 2000);
    await free(20);
    expect(ended.slice(2)).toEqual(['impatient false', 'patient true', 'third true', 'next true']);
    expect(state.free).toBe(17);
  });
});

it('what the kernel charges contains what was just taken, and is less than the machine has', () => {
  const read = openChargedMemory(totalmem());
  const before = read();
  const taken = Buffer.alloc(64 * MiB, 'a');
  const after = read();
  expect(before).toBeGreaterThan(20 * MiB);
  // Other processes may give something back meanwhile.
  expect(after - before).toBeGreaterThan(taken.length / 2);
  expect(after).toBeLessThan(totalmem());
});

describe('what the kernel charges is read', () => {
  const V1 = '7:cpu:/\n6:memory:/pods/one\n';
  const V1_FOLDER = 'sys/fs/cgroup/memory/pods';
  it.each([
    [
      'from version 2 of cgroups, which charges sockets with everything else',
      {
        'proc/self/cgroup': '0::/user/app\n',
        'sys/fs/cgroup/user/app/memory.max': '256\n',
        'sys/fs/cgroup/user/app/memory.current': '200\n',
        'sys/fs/cgroup/user/app/memory.stat': 'anon 110\ninactive_file 30\nactive_file 50\nsock 10\n',
      },
      120,
    ],
    [
      'from version 1, where a limit of the parent counts, and sockets are apart',
      {
        'proc/self/cgroup': V1,
        [`${V1_FOLDER}/one/memory.limit_in_bytes`]: '9223372036854771712\n',
        [`${V1_FOLDER}/memory.limit_in_bytes`]: '256\n',
        [`${V1_FOLDER}/memory.usage_in_bytes`]: '200\n',
        [`${V1_FOLDER}/memory.kmem.tcp.usage_in_bytes`]: '25\n',
        [`${V1_FOLDER}/memory.stat`]: 'inactive_file 1\ntotal_inactive_file 30\ntotal_active_file 50\n',
      },
      145,
    ],
  ])('%s', async (_, files, charged) => {
    const system = await mkdtemp(`${tmpdir()}/system-`);
    for (const [file, text] of Object.entries(files)) await Bun.write(`${system}/${file}`, text);
    expect(openChargedMemory(1024, system)()).toBe(charged);
    await rm(system, { recursive: true });
  });

  it('from the process and the sockets of the machine, where no cgroup has a limit', async () => {
    const system = await mkdtemp(`${tmpdir()}/system-`);
    const read = openChargedMemory(1024, system);
    await Bun.write(
      `${system}/proc/net/sockstat`,
      'sockets: used 9\nTCP: inuse 3 orphan 0 tw 0 alloc 5 mem 5000\n',
    );
    using _memory = spyOn(process.memoryUsage, 'rss').mockReturnValue(100);
    expect([read(), openChargedMemory(1024, system)()]).toEqual([100, 100 + 5000 * 4096]);
    await rm(system, { recursive: true });
  });
});
