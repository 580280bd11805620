import { afterEach, beforeEach, describe, expect, it, jest } from 'bun:test';
import { ReaderAllowance } from '../../src/http/reader-allowance.ts';
import { traceOf } from '../../src/http/request-trace.ts';
import { tracedBody } from '../../src/http/traced-body.ts';

const KiB = 1024;

describe('ReaderAllowance', () => {
  /** A reader that takes each piece after so many seconds; tells after how many the allowance is spent. */
  function spentAfter(pieceBytes: number, secondsForAPiece: number): number | undefined {
    const allowance = new ReaderAllowance();
    for (let second = 0; second < 3600; second++) {
      if (second % secondsForAPiece === 0) {
        allowance.pieceTaken(second * 1000);
        allowance.pieceWaits(pieceBytes, second * 1000);
      }
      if (allowance.isSpent(second * 1000)) return second;
    }
    return undefined;
  }

  it.each([
    ['takes nothing', 64 * KiB, 9999, 60],
    ['takes nothing of a large piece', 512 * KiB, 9999, 256],
    ['takes a piece of 1 KiB every minute', KiB, 59, 61],
    ['takes half of the least rate', 64 * KiB, 64, 60],
  ])('is spent by a reader that %s', (_, pieceBytes, secondsForAPiece, seconds) => {
    expect(spentAfter(pieceBytes, secondsForAPiece)).toBe(seconds);
  });

  it.each([
    ['64 KiB in 31 s', 64 * KiB, 31],
    ['512 KiB in 255 s', 512 * KiB, 255],
    ['4 KiB in 2 s', 4 * KiB, 2],
  ])('lasts for a reader that takes %s', (_, pieceBytes, secondsForAPiece) => {
    expect(spentAfter(pieceBytes, secondsForAPiece)).toBeUndefined();
  });

  it('is not spent while the upstream is waited for', () => {
    const allowance = new ReaderAllowance();
    allowance.pieceWaits(KiB, 0);
    allowance.pieceTaken(1000);
    expect(allowance.isSpent(3_600_000)).toBeFalse();
  });
});

describe('tracedBody()', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  async function settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  }

  it('gives up the upstream and closes the connection of a reader that stops', async () => {
    let isCancelled = false;
    const upstream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull: (controller) => controller.enqueue(new Uint8Array(64 * KiB)),
      cancel: () => {
        isCancelled = true;
      },
    });
    const timeouts: number[] = [];
    const request = new Request('http://gateway.test');
    const server = { timeout: (_: Request, seconds: number) => void timeouts.push(seconds) };
    const reader = tracedBody(upstream, { request, server }).getReader();
    expect((await reader.read()).value?.byteLength).toBe(64 * KiB);
    const reading = reader.read();
    await reading;
    await settle();
    jest.advanceTimersByTime(65_000);
    await settle();
    expect(isCancelled).toBeTrue();
    expect(timeouts).toEqual([1]);
    expect(traceOf(request)).toMatchObject({ clientGone: 'streaming', cause: 'slow reader' });
    await traceOf(request).bodyEnd;
    await expect(reader.read()).rejects.toBeUndefined();
    expect(jest.getTimerCount()).toBe(0);
  });
});
