import { afterEach, beforeEach, describe, expect, it, jest } from 'bun:test';
import { GatewayError } from '../../src/http/errors.ts';
import { readBody } from '../../src/http/request-body.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A request whose body arrives piece by piece, as the test sends it. */
function arriving(headers: Record<string, string> = {}) {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given;
    },
  });
  const request = new Request('http://gateway.test', { method: 'POST', headers, body });
  return { request, send: () => controller?.enqueue(Buffer.from('piece')), end: () => controller?.close() };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

describe('readBody()', () => {
  it.each([{}, { 'content-length': '100' }])(
    'answers 408 when the body stops arriving for 25 s: %j',
    async (headers) => {
      const { request, send } = arriving(headers);
      const outcome = readBody(request).catch((error: unknown) => error);
      send();
      await settle();
      jest.advanceTimersByTime(25_000);
      const error = await outcome;
      expect(error).toBeInstanceOf(GatewayError);
      expect(error).toMatchObject({ status: 408 });
    },
  );

  it('waits for a body that is slow but moves', async () => {
    const { request, send, end } = arriving();
    const body = readBody(request);
    for (let piece = 0; piece < 10; piece++) {
      send();
      await settle();
      jest.advanceTimersByTime(20_000);
    }
    end();
    expect((await body).toString()).toBe('piece'.repeat(10));
  });
});
