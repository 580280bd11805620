import { afterEach, beforeEach, describe, expect, it, jest } from 'bun:test';
import { Budget } from '../../src/gateway/http/admission/budget.ts';
import { RequestBodies } from '../../src/gateway/http/admission/request-bodies.ts';
import { readBody } from '../../src/gateway/http/request-body.ts';
import { pass, settle } from '../support/passing-time.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const KiB = 1024;
const BUDGET_BYTES = 64 * 1024 * KiB;

/** Bodies that may use so much, a quarter of the ledger. */
function bodiesWithin(bytes: number): RequestBodies {
  return new RequestBodies(new Budget(4 * bytes));
}

/** A request whose body arrives chunk by chunk, as the test sends it. */
function arriving(headers: Record<string, string> = {}) {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given;
    },
  });
  const request = new Request('http://gateway.test', { method: 'POST', headers, body });
  return {
    request,
    send: (bytes: number) => controller?.enqueue(new Uint8Array(bytes)),
    end: () => controller?.close(),
  };
}

function read({ request }: { request: Request }, budget = bodiesWithin(BUDGET_BYTES)) {
  let status: number | undefined;
  const body = readBody(request, budget).catch((error) => {
    status = error.status;
    return undefined;
  });
  return { body, budget, status: () => status };
}

describe('the deadline of readBody()', () => {
  it.each([
    ['25 s', 'of which little arrives', {}, 5, 25_000],
    ['25 s', 'of 100 declared bytes', { 'content-length': '100' }, 5, 25_000],
    ['25 s', 'of 2 MB declared', { 'content-length': '2000000' }, 5, 25_000],
    ['a second more for each 16 KiB', 'of which 32 KiB have arrived', {}, 32 * KiB, 27_000],
  ])('is %s for a body %s', async (_, __, headers, bytes, deadlineMs) => {
    const { send, ...body } = arriving(headers);
    const { status, budget } = read(body);
    send(bytes);
    await pass(deadlineMs - 1);
    expect(status()).toBeUndefined();
    await pass(1);
    expect(status()).toBe(408);
    expect(budget.usedBytes).toBe(0);
  });

  it.each([
    ['does not wait for single bytes', 25, 1, 408],
    ['waits for a body that keeps the pace', 60, 16 * KiB, undefined],
  ])('%s', async (_, seconds, bytesPerSecond, expected) => {
    const { send, end, ...request } = arriving();
    const { body, status } = read(request);
    for (let second = 0; second < seconds; second++) {
      send(bytesPerSecond);
      await pass(1000);
    }
    expect(status()).toBe(expected);
    end();
    expect((await body)?.bytes.length).toBe(expected ? undefined : seconds * bytesPerSecond);
  });
});

describe('the budget of readBody()', () => {
  it('has room for a body until it is disposed of', async () => {
    const { send, end, ...request } = arriving();
    const { body, budget } = read(request);
    send(100 * KiB);
    end();
    const read100 = await body;
    expect(budget.usedBytes).toBeGreaterThan(100 * KiB);
    read100?.[Symbol.dispose]();
    expect(budget.usedBytes).toBe(0);
  });

  it('takes the oldest small body that still arrives for a new one', async () => {
    const budget = bodiesWithin(40 * KiB);
    const first = read(arriving(), budget);
    const second = read(arriving(), budget);
    const third = read(arriving(), budget);
    await settle();
    expect([first.status(), second.status(), third.status()]).toEqual([503, undefined, undefined]);
  });

  it.each([
    // A thirty-second of the ledger, of which three quarters are in use.
    ['is smaller when much is in flight', 32 * 40 * KiB, 24 * 40 * KiB],
    ['is what is left of the ledger', 32 * 100 * KiB, 32 * 100 * KiB - 40 * KiB],
  ])('%s', async (_, limit, inUse) => {
    const ledger = new Budget(limit);
    ledger.take(inUse);
    const budget = new RequestBodies(ledger);
    const statuses = [arriving(), arriving(), arriving()].map((body) => read(body, budget).status);
    await settle();
    expect(statuses.map((status) => status())).toEqual([503, undefined, undefined]);
  });

  it('has no room for what still arrives of a body that was dropped', async () => {
    const budget = bodiesWithin(20 * KiB);
    const first = budget.open(0);
    budget.open(0);
    await expect(first.dropped).rejects.toMatchObject({ status: 503, headers: { connection: 'close' } });
    const { usedBytes } = budget;
    expect(() => budget.grow(first, KiB)).toThrow();
    expect(budget.usedBytes).toBe(usedBytes);
  });

  it('never takes a body that is whole', async () => {
    const budget = bodiesWithin(40 * KiB);
    const whole = arriving();
    whole.send(10 * KiB);
    whole.end();
    const first = read(whole, budget);
    await first.body;
    const second = read(arriving(), budget);
    await settle();
    expect([first.status(), second.status()]).toEqual([undefined, 503]);
  });

  it.each([
    ['by its declared length', { 'content-length': '70000' }, 0],
    ['by what has arrived', {}, 70_000],
  ])('refuses a large body for which there is no room, %s', async (_, headers, bytes) => {
    const budget = bodiesWithin(100 * KiB);
    const small = arriving();
    small.send(62 * KiB);
    const first = read(small, budget);
    await settle();
    const { send, ...large } = arriving(headers);
    const second = read(large, budget);
    if (bytes) send(bytes);
    await settle();
    expect([first.status(), second.status()]).toEqual([undefined, 503]);
  });
});
