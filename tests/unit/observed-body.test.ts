import { afterEach, beforeEach, describe, expect, it, jest } from 'bun:test';
import { observedBody } from '../../src/gateway/http/observed-body.ts';
import { ReaderAllowance } from '../../src/gateway/http/reader-allowance.ts';
import { traceOf } from '../../src/gateway/trace/request-trace.ts';

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

const unserved = (request: Request) => ({ request, server: null, trace: traceOf(request) });

describe('observedBody()', () => {
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
    const reader = observedBody(upstream, { request, server, trace: traceOf(request) }).getReader();
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

  /** An upstream that sends what it is given, and says whether it was given up. */
  function pushedUpstream() {
    let controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
    let isCancelled = false;
    const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (given) => {
        controller = given;
      },
      cancel: () => {
        isCancelled = true;
      },
    });
    return {
      stream,
      push: (bytes: number) => controller?.enqueue(new Uint8Array(bytes)),
      close: () => controller?.close(),
      isCancelled: () => isCancelled,
    };
  }

  const request = () => new Request('http://gateway.test');
  /** A paid body whose first piece is 1 KiB. */
  const paid = () => ({ firstPiece: new Uint8Array(KiB), longestMs: 280_000 });

  function endOf(of: Request): () => boolean {
    let hasEnded = false;
    void traceOf(of).bodyEnd?.then(() => {
      hasEnded = true;
    });
    return () => hasEnded;
  }

  it('skips an empty piece', async () => {
    const upstream = pushedUpstream();
    for (const bytes of [0, 2, 0, 0, 3, 0]) upstream.push(bytes);
    upstream.close();
    const reading = new Response(observedBody(upstream.stream, unserved(request()))).bytes();
    expect(await reading).toHaveLength(5);
  });

  it('reads a paid body to its end when its reader stops', async () => {
    const upstream = pushedUpstream();
    const of = request();
    const timeouts: number[] = [];
    const server = { timeout: (_: Request, seconds: number) => void timeouts.push(seconds) };
    const reader = observedBody(
      upstream.stream,
      { request: of, server, trace: traceOf(of) },
      paid(),
    ).getReader();
    const hasEnded = endOf(of);
    await reader.read();
    upstream.push(64 * KiB);
    await reader.read();
    await settle();
    jest.advanceTimersByTime(65_000);
    await settle();
    expect(timeouts).toEqual([1]);
    await expect(reader.read()).rejects.toBeUndefined();
    upstream.push(64 * KiB);
    await settle();
    expect(hasEnded()).toBeFalse();
    upstream.close();
    await settle();
    expect(hasEnded()).toBeTrue();
    expect(upstream.isCancelled()).toBeFalse();
    expect(traceOf(of)).toMatchObject({ clientGone: 'streaming', cause: 'slow reader', bytes: 65 * KiB });
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    ['60 s of silence', 60_000, 0],
    ['longestMs, although it flows', 280_000, 30_000],
  ])('gives a paid body that was left up after %s', async (_, endsAfterMs, pieceEveryMs) => {
    const upstream = pushedUpstream();
    const of = request();
    const body = observedBody(upstream.stream, unserved(of), paid());
    const hasEnded = endOf(of);
    await body.cancel();
    const lastLook = endsAfterMs - 1000;
    for (let now = 0; now < lastLook; now += 1000) {
      if (pieceEveryMs && now % pieceEveryMs === 0) upstream.push(KiB);
      await settle();
      jest.advanceTimersByTime(1000);
    }
    await settle();
    expect(upstream.isCancelled()).toBeFalse();
    expect(hasEnded()).toBeFalse();
    jest.advanceTimersByTime(1000);
    await settle();
    expect(upstream.isCancelled()).toBeTrue();
    expect(hasEnded()).toBeTrue();
    expect(traceOf(of)).toMatchObject({ clientGone: 'streaming', brokenBody: false, bytes: KiB });
    expect(jest.getTimerCount()).toBe(0);
  });

  it('gives a paid body up when its upstream was silent until the connection was cut', async () => {
    const upstream = pushedUpstream();
    const of = request();
    const body = observedBody(upstream.stream, unserved(of), paid());
    const reader = body.getReader();
    await reader.read();
    const waiting = reader.read();
    await settle();
    jest.setSystemTime(Date.now() + 60_000);
    await reader.cancel();
    await waiting;
    await settle();
    expect(upstream.isCancelled()).toBeTrue();
    expect(traceOf(of)).toMatchObject({ brokenBody: true, cause: 'stalled', clientGone: undefined });
    await traceOf(of).bodyEnd;
  });
});
