import { beforeEach, describe, expect, it, jest } from 'bun:test';
import { Exchange, IDLE_TIMEOUT_SECONDS } from '../../src/gateway/exchange/exchange.ts';
import { OpenExchanges } from '../../src/gateway/exchange/open-exchanges.ts';
import { settle } from '../support/passing-time.ts';

const RESPONSE = new Response();

beforeEach(() => void jest.useFakeTimers());

/**
 * An exchange over a socket, and what is done with it, in order.
 *
 * @param faulty what its observer does besides
 */
function watched(faulty: { began?: () => void; responded?: () => void } = {}) {
  jest.clearAllTimers();
  const done: unknown[] = [];
  const exchanges = new OpenExchanges({
    began: () => {
      done.push('began');
      faulty.began?.();
    },
    responded: (_, { status }) => {
      done.push(status);
      faulty.responded?.();
    },
    ended: ({ record }) => void done.push(record.reason ?? record.cutOff ?? 'ended'),
  });
  const server = {
    requestIP: () => null,
    timeout: (_: Request, seconds: number) => void done.push(seconds),
    port: 1,
  };
  return { done, exchanges, exchange: new Exchange(new Request('http://gateway.test'), server) };
}

describe('an exchange ends once, whatever its handler does:', () => {
  it.each([
    ['responds', () => RESPONSE, ['began', 200, 'ended']],
    ['responds later', async () => RESPONSE, ['began', 200, 'ended']],
    ['throws', () => fail(), ['began', 'internalError']],
    ['rejects', async () => fail(), ['began', 'internalError']],
    ['returns no response', () => 'text', ['began', 'ended']],
  ])('%s', async (_, handle, expected) => {
    const { done, exchanges, exchange } = watched();
    await Promise.try(() => exchanges.run(exchange, handle)).catch(() => {});
    expect(done).toEqual(expected);
    await exchanges.settled();
  });

  it.each([
    [{ began: fail }, ['began', 'internalError']],
    [{ responded: fail }, ['began', 200, 'ended']],
  ])('also when its observer throws: %o', (faulty, expected) => {
    const { done, exchanges, exchange } = watched(faulty);
    expect(() => exchanges.run(exchange, () => RESPONSE)).toThrow();
    expect([done, exchanges.size]).toEqual([expected, 0]);
  });
});

describe('an exchange that is kept open', () => {
  it('ends when it has been closed as often', async () => {
    const { done, exchanges, exchange } = watched();
    exchange.keepOpen();
    exchange.keepOpen();
    exchanges.run(exchange, () => RESPONSE);
    exchange.close();
    expect(done).toEqual(['began', 200]);
    let isSettled = false;
    const settled = exchanges.settled().then(() => {
      isSettled = true;
    });
    await settle();
    expect(isSettled).toBe(false);
    exchange.close();
    expect(done).toEqual(['began', 200, 'ended']);
    jest.advanceTimersByTime(20);
    await settled;
  });
});

it('all that are left end at once, and only once', async () => {
  const { done, exchanges, exchange } = watched();
  const { promise, resolve } = Promise.withResolvers<Response>();
  const running = exchanges.run(exchange, () => promise);
  exchange.keepOpen();
  exchanges.endAll();
  expect([done.splice(0), exchanges.size]).toEqual([['began', 'shutdown'], 0]);
  // Its handler responds after that, with a body.
  resolve(RESPONSE);
  await running;
  exchange.keepOpen();
  exchange.close();
  exchange.close();
  expect(done).toEqual([200]);
});

describe('the idle timeout', () => {
  it('is off for an exchange that takes long, until it ends', async () => {
    const { done, exchanges, exchange } = watched();
    const { promise, resolve } = Promise.withResolvers<Response>();
    const running = exchanges.run(exchange, () => promise);
    // Early enough for one that began right after the last look, and only once.
    jest.advanceTimersByTime((IDLE_TIMEOUT_SECONDS * 1000) / 4);
    expect(done.splice(0)).toEqual(['began', 0]);
    jest.advanceTimersByTime(60_000);
    resolve(RESPONSE);
    await running;
    expect(done).toEqual([200, IDLE_TIMEOUT_SECONDS, 'ended']);
    jest.advanceTimersByTime(60_000);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('stays for one that is short', () => {
    const { done, exchanges, exchange } = watched();
    exchanges.run(exchange, () => RESPONSE);
    jest.advanceTimersByTime(60_000);
    expect(done).toEqual(['began', 200, 'ended']);
  });
});

function fail(): never {
  throw new Error('no');
}
