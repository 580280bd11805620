import { beforeEach, expect, it, jest } from 'bun:test';
import { Exchange, IDLE_TIMEOUT_SECONDS } from '../../src/gateway/exchange/exchange.ts';
import { OpenExchanges } from '../../src/gateway/exchange/open-exchanges.ts';

const RESPONSE = new Response();

beforeEach(() => void jest.useFakeTimers());

/** An exchange over a socket, and what is done with it, in order. A faulty observer may throw instead. */
function watched(faulty: { began?: () => void; responded?: () => void } = {}) {
  jest.clearAllTimers();
  const done: unknown[] = [];
  const exchanges = new OpenExchanges({
    began: () => void done.push('began'),
    responded: (_, { status }) => void done.push(status),
    ended: ({ record }) => void done.push(record.reason ?? record.cutOff ?? 'ended'),
    ...faulty,
  });
  const server = {
    requestIP: () => null,
    timeout: (_: Request, seconds: number) => void done.push(seconds),
    port: 1,
  };
  return { done, exchanges, exchange: new Exchange(new Request('http://gateway.test'), server) };
}

// Other ends, on every route: integration/relay/every-end.test.ts.
it.each([
  ['its handler throws', () => fail(), {}, ['began', 'internalError']],
  ['its handler rejects', async () => fail(), {}, ['began', 'internalError']],
  ['its handler returns no response', () => 'text', {}, ['began', 'ended']],
  ['its observer throws at its begin', () => RESPONSE, { began: fail }, ['internalError']],
  ['its observer throws at its response', () => RESPONSE, { responded: fail }, ['began', 'ended']],
])('an exchange ends once, although %s', async (_, handle, faulty, expected) => {
  const { done, exchanges, exchange } = watched(faulty);
  await Promise.try(() => exchanges.run(exchange, handle)).catch(() => {});
  expect([done, exchanges.size]).toEqual([expected, 0]);
});

it('all that are left end at once, and only once', async () => {
  const { done, exchanges, exchange } = watched();
  const { promise, resolve } = Promise.withResolvers<Response>();
  const running = exchanges.run(exchange, () => promise);
  const work = Promise.withResolvers<void>();
  exchange.keepOpenUntil(work.promise);
  exchanges.endAll();
  expect([done.splice(0), exchanges.size]).toEqual([['began', 'shutdown'], 0]);
  // Its handler responds after that, with a body.
  resolve(RESPONSE);
  await running;
  work.resolve();
  await work.promise;
  expect(done).toEqual([200]);
});

it('the idle timeout is off for an exchange that takes long, until it ends', async () => {
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

function fail(): never {
  throw new Error('no');
}
