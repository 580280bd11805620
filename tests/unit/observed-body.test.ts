import { afterEach, beforeEach, describe, expect, it, jest, mock } from 'bun:test';
import { observe } from '../../src/gateway/http/observed-body.ts';
import { ReaderAllowance } from '../../src/gateway/http/reader-allowance.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import { pass, settle } from '../support/passing-time.ts';

const KiB = 1024;

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe('ReaderAllowance', () => {
  /** A reader that takes each chunk after so many seconds; returns after how many the allowance is spent. */
  async function spentAfter(chunkBytes: number, secondsForAChunk: number): Promise<number | undefined> {
    const allowance = new ReaderAllowance();
    for (let second = 0; second < 1800; ) {
      let isTaken: boolean | undefined;
      void allowance.isTaken(chunkBytes, Bun.sleep(secondsForAChunk * 1000)).then((result) => {
        isTaken = result;
      });
      for (; isTaken === undefined; second++) await pass(1000);
      if (!isTaken) return second;
    }
    return undefined;
  }

  it.each([
    ['nothing', 64 * KiB, 9999, 60],
    ['nothing of a large chunk', 512 * KiB, 9999, 256],
    ['1 KiB every minute', KiB, 59, 61],
    ['half of the least rate', 64 * KiB, 64, 60],
    ['64 KiB in 31 s', 64 * KiB, 31, undefined],
    ['512 KiB in 255 s', 512 * KiB, 255, undefined],
    ['4 KiB in 2 s', 4 * KiB, 2, undefined],
  ])('of a reader that takes %s lasts its time', async (_, chunkBytes, secondsForAChunk, seconds) => {
    expect(await spentAfter(chunkBytes, secondsForAChunk)).toBe(seconds);
  });

  it('is full again after chunks that were read at once', async () => {
    jest.clearAllTimers();
    // Only what passes between the chunks counts, whatever the clock says.
    await pass(200_000);
    const allowance = new ReaderAllowance();
    for (const ms of [50_000, 59_000]) {
      const slow = allowance.isTaken(KiB, Bun.sleep(ms));
      await pass(ms);
      expect(await slow).toBeTrue();
      for (let chunk = 0; chunk < 2; chunk++) allowance.add(64 * KiB);
    }
    expect(jest.getTimerCount()).toBe(0);
  });
});

describe('observe()', () => {
  /** A body that is observed while its upstream sends what it is given. A paid one has had its first chunk, of 1 KiB. */
  function observed(kind: 'relayed' | 'paid') {
    // Those of other files, which may still serve requests in this process.
    jest.clearAllTimers();
    let controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
    const seen = { isCancelled: false, hasEnded: false };
    const reader = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (given) => {
        controller = given;
      },
      cancel: () => {
        seen.isCancelled = true;
      },
    }).getReader();
    const record = new RequestRecord(new Request('http://gateway.test'));
    const isPaid = kind === 'paid';
    const body = isPaid ? { firstChunk: new Uint8Array(KiB), reader } : { reader };
    const { source, end } = observe(body, record, isPaid ? 280_000 : undefined);
    void end.then(() => {
      seen.hasEnded = true;
    });
    /** The connection to a client that reads at once, until `isReading` is false. */
    const sink = {
      written: [] as { size: number; chunk: Uint8Array }[],
      isReading: true,
      write: (chunk: Uint8Array) => {
        sink.written.push({ size: chunk.byteLength, chunk });
        return sink.isReading ? chunk.byteLength : new Promise<number>(() => {});
      },
      end: mock(() => 0),
      flush: () => 0,
      start: () => {},
      close: mock((_?: Error) => {}),
    };
    void source.pull(sink);
    const settled = async (work?: unknown) => {
      await work;
      await settle();
    };
    return {
      ...{ sink, record, seen },
      push: (...sizes: number[]) => settled(sizes.map((bytes) => controller?.enqueue(new Uint8Array(bytes)))),
      close: () => settled(controller?.close()),
      breakOff: () => settled(controller?.error(new Error('reset'))),
      /** The client's connection closes. */
      cancel: () => settled(settle().then(() => source.cancel?.())),
    };
  }

  it('passes every chunk on but empty ones, and frees its memory', async () => {
    const { sink, seen, record, push, close } = observed('paid');
    await push(0, 2, 0, 0, 3, 0);
    await close();
    expect(sink.written.map(({ size, chunk }) => [size, chunk.byteLength])).toEqual([
      ...[
        [KiB, 0],
        [2, 0],
        [3, 0],
      ],
    ]);
    expect(sink.end).toHaveBeenCalledTimes(1);
    expect(sink.close).not.toHaveBeenCalled();
    expect(seen).toEqual({ hasEnded: true, isCancelled: false });
    expect(record).toMatchObject({ bytes: KiB + 5, clientGone: undefined, brokenBody: false });
  });

  it.each([
    ['cancels the upstream of a relayed body', 'relayed'],
    ['reads a paid body to its end', 'paid'],
  ] as const)('%s when its reader stops, and closes the connection', async (_, kind) => {
    const { sink, record, seen, push, close } = observed(kind);
    await push(64 * KiB, 64 * KiB);
    sink.isReading = false;
    await push(64 * KiB);
    await pass(59_000);
    expect(sink.close).not.toHaveBeenCalled();
    await pass(6000);
    expect(sink.close.mock.calls).toEqual([[new Error()]]);
    expect(record).toMatchObject({ clientGone: 'streaming', cause: 'slow reader' });
    if (kind === 'paid') {
      await push(64 * KiB);
      expect(seen).toEqual({ hasEnded: false, isCancelled: false });
      await close();
    }
    expect(seen).toEqual({ hasEnded: true, isCancelled: kind === 'relayed' });
    expect(sink.end).not.toHaveBeenCalled();
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    ['60 s of silence', 60_000, 0],
    ['paidMs, although it flows', 280_000, 30_000],
  ])('cancels a paid body whose client has disconnected after %s', async (_, endsAfterMs, chunkEveryMs) => {
    const { cancel, record, seen, push } = observed('paid');
    await cancel();
    for (let now = 0; now < endsAfterMs - 1000; now += 1000) {
      if (chunkEveryMs && now % chunkEveryMs === 0) await push(KiB);
      await pass(1000);
    }
    expect(seen).toEqual({ isCancelled: false, hasEnded: false });
    await pass(1000);
    expect(seen).toEqual({ isCancelled: true, hasEnded: true });
    expect(record).toMatchObject({ clientGone: 'streaming', brokenBody: false, bytes: KiB });
    expect(jest.getTimerCount()).toBe(0);
  });

  it('does not call a paid body broken that breaks off after its client has disconnected', async () => {
    const { cancel, record, seen, breakOff } = observed('paid');
    await cancel();
    await breakOff();
    expect(seen).toEqual({ isCancelled: false, hasEnded: true });
    expect(record).toMatchObject({ clientGone: 'streaming', brokenBody: false, cause: undefined });
  });

  it.each([
    ['the upstream that was silent', true, { brokenBody: true, cause: 'stalled', clientGone: undefined }],
    ['the client that read nothing', false, { brokenBody: false, cause: undefined, clientGone: 'streaming' }],
  ])('blames %s when Bun has cut the connection', async (_, isReading, ending) => {
    const { cancel, sink, record, seen, push } = observed('relayed');
    sink.isReading = isReading;
    await push(64 * KiB);
    jest.setSystemTime(Date.now() + 60_000);
    await cancel();
    expect(seen).toEqual({ isCancelled: true, hasEnded: true });
    expect(record).toMatchObject(ending);
  });
});
