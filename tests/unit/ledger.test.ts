import { beforeEach, describe, expect, it, jest } from 'bun:test';
import { totalmem } from 'node:os';
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
    expect([50, 51].map((amount) => ledger.hasRoom(amount, 3 / 4))).toEqual([true, false]);
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
