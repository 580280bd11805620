import { afterEach, beforeEach, describe, expect, it, jest } from 'bun:test';
import { observedBody } from '../../src/gateway/http/observed-body.ts';
import { ReaderAllowance } from '../../src/gateway/http/reader-allowance.ts';
import { traceOf } from '../../src/gateway/trace/request-trace.ts';
import { pass, settle } from '../support/passing-time.ts';

const KiB = 1024;

describe('ReaderAllowance', () => {
  /** A reader that takes each piece after so many seconds; returns after how many the allowance is spent. */
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

describe('observedBody()', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  /** A body that is observed while its upstream sends what it is given. A paid one has had its first piece, of 1 KiB. */
  function observe(kind: 'relayed' | 'paid') {
    let controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
    const seen = { isCancelled: false, hasEnded: false, timeouts: [] as number[] };
    const upstream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (given) => {
        controller = given;
      },
      cancel: () => {
        seen.isCancelled = true;
      },
    });
    const request = new Request('http://gateway.test');
    const server = { timeout: (_: Request, seconds: number) => void seen.timeouts.push(seconds) };
    const paid = { firstPiece: new Uint8Array(KiB), longestMs: 280_000 };
    const body = observedBody(
      upstream,
      { request, server, trace: traceOf(request) },
      kind === 'paid' ? paid : undefined,
    );
    const trace = traceOf(request);
    void trace.bodyEnd?.then(() => {
      seen.hasEnded = true;
    });
    return {
      body,
      trace,
      seen,
      push: (bytes: number) => controller?.enqueue(new Uint8Array(bytes)),
      close: () => controller?.close(),
    };
  }

  it('skips an empty piece', async () => {
    const { body, push, close } = observe('relayed');
    for (const bytes of [0, 2, 0, 0, 3, 0]) push(bytes);
    close();
    expect(await new Response(body).bytes()).toHaveLength(5);
  });

  it.each([
    ['cancels the upstream of a relayed body', 'relayed'],
    ['reads a paid body to its end', 'paid'],
  ] as const)('%s when its reader stops, and closes the connection', async (_, kind) => {
    const { body, trace, seen, push, close } = observe(kind);
    const reader = body.getReader();
    for (let piece = 0; piece < 2; piece++) {
      push(64 * KiB);
      await reader.read();
    }
    push(64 * KiB);
    await pass(65_000);
    expect(seen.timeouts).toEqual([1]);
    await expect(reader.read()).rejects.toBeUndefined();
    expect(trace).toMatchObject({ clientGone: 'streaming', cause: 'slow reader' });
    if (kind === 'paid') {
      push(64 * KiB);
      await settle();
      expect(seen).toMatchObject({ hasEnded: false, isCancelled: false });
      close();
      await settle();
    }
    expect(seen).toMatchObject({ hasEnded: true, isCancelled: kind === 'relayed' });
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    ['60 s of silence', 60_000, 0],
    ['longestMs, although it flows', 280_000, 30_000],
  ])('cancels a paid body whose client has disconnected after %s', async (_, endsAfterMs, pieceEveryMs) => {
    const { body, trace, seen, push } = observe('paid');
    await body.cancel();
    for (let now = 0; now < endsAfterMs - 1000; now += 1000) {
      if (pieceEveryMs && now % pieceEveryMs === 0) push(KiB);
      await pass(1000);
    }
    expect(seen).toMatchObject({ isCancelled: false, hasEnded: false });
    await pass(1000);
    expect(seen).toMatchObject({ isCancelled: true, hasEnded: true });
    expect(trace).toMatchObject({ clientGone: 'streaming', brokenBody: false, bytes: KiB });
    expect(jest.getTimerCount()).toBe(0);
  });

  it('cancels a paid body when its upstream was silent until the connection was cut', async () => {
    const { body, trace, seen } = observe('paid');
    const reader = body.getReader();
    await reader.read();
    const waiting = reader.read();
    await settle();
    jest.setSystemTime(Date.now() + 60_000);
    await reader.cancel();
    await waiting;
    await settle();
    expect(seen).toMatchObject({ isCancelled: true, hasEnded: true });
    expect(trace).toMatchObject({ brokenBody: true, cause: 'stalled', clientGone: undefined });
  });
});
