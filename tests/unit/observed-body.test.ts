import { beforeEach, describe, expect, it, jest, mock, spyOn } from 'bun:test';
import { Admission } from '../../src/gateway/admission/admission.ts';
import { CALLS } from '../../src/gateway/admission/calls.ts';
import { Permit } from '../../src/gateway/admission/permit.ts';
import { KEEPS_UP_BYTES, priceOfStream } from '../../src/gateway/admission/prices.ts';
import type { Connection } from '../../src/gateway/admission/send-queues.ts';
import { ObservedBody } from '../../src/gateway/exchange/observed-body.ts';
import type { Chunk } from '../../src/gateway/http/body-reader.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import { fill } from '../support/long-calls.ts';
import { pass, settle } from '../support/passing-time.ts';
import { itWith, LINUX } from '../support/requirements.ts';
import { testSettings } from '../support/world.ts';

const KiB = 1024;

beforeEach(() => {
  jest.useFakeTimers();
  // Those of other files, which may still serve requests in this process.
  jest.clearAllTimers();
});

/**
 * A body that is observed while its upstream sends what it is given. A paid one has had its first chunk, of 1 KiB. For a
 * complete one of a megabyte there is no memory.
 */
function observed(kind: 'relayed' | 'paid' | 'complete', connection?: Connection) {
  const { readable, writable } = new TransformStream<Chunk, Chunk>();
  const [reader, upstream] = [readable.getReader(), writable.getWriter()];
  const onCancel = spyOn(reader, 'cancel');
  const record = new RequestRecord(new Request('http://gateway.test'));
  const bodies = {
    relayed: { rest: reader },
    paid: { firstChunk: new Uint8Array(KiB), rest: reader },
    complete: { firstChunk: new Uint8Array(KiB * KiB), rest: null },
  };
  const isPaid = kind === 'paid';
  const admission = new Admission(testSettings());
  const { streams, ledger } = admission;
  const permit = new Permit(admission, streams, isPaid ? CALLS.generation : CALLS.get, undefined, 0);
  const { signal } = new AbortController();
  if (isPaid) permit.memory.admitTrack(Number.POSITIVE_INFINITY, signal);
  else
    void permit.memory.reserveBody(priceOfStream(Number.POSITIVE_INFINITY), Number.POSITIVE_INFINITY, signal);
  if (kind === 'complete') fill(ledger);
  const onUpstreamEnd = mock();
  const client = { connection, onUpstreamEnd };
  const body = new ObservedBody(bodies[kind], record, permit.memory, client, isPaid ? 280_000 : undefined);
  let taken: PromiseWithResolvers<number> | undefined;
  /** The connection to a client that reads at once, until it has stopped. */
  const sink = {
    write: mock((chunk: Uint8Array) => taken?.promise ?? chunk.byteLength),
    end: mock(() => 0),
    flush: () => 0,
    start: () => {},
    close: mock((_?: Error) => {}),
  };
  void body.source.pull(sink);
  const settled = async (work?: unknown) => {
    await work;
    await settle();
  };
  return {
    body,
    permit,
    ledger,
    sink,
    record,
    onCancel,
    onUpstreamEnd,
    push: (...sizes: number[]) => settled(sizes.map((bytes) => upstream.write(new Uint8Array(bytes)))),
    close: () => settled(upstream.close()),
    stopReading: () => {
      taken = Promise.withResolvers();
    },
    /** The reader takes the chunk that waits for it. */
    take: () => settled(taken?.resolve(0)),
    /** The client's connection closes. */
    leave: () => settled(settle().then(() => body.source.cancel?.())),
  };
}

// How bodies end that are silent, or whose readers stop: faults/streamed-bodies.test.ts.
describe('a body', () => {
  it('passes every chunk on but empty ones, and frees its memory', async () => {
    const { sink, record, onCancel, onUpstreamEnd, push, close } = observed('paid');
    await push(0, 2, 0, 0, 3, 0);
    await close();
    expect(sink.write.mock.results.map(({ value }) => value)).toEqual([KiB, 2, 3]);
    expect(sink.write.mock.calls.map(([chunk]) => chunk.byteLength)).toEqual([0, 0, 0]);
    // Bun may use the connection again at once, so its idle timeout is restored before that.
    expect(onUpstreamEnd.mock.invocationCallOrder).toEqual([Number(sink.end.mock.invocationCallOrder) - 1]);
    for (const unused of [sink.close, onCancel]) expect(unused).not.toHaveBeenCalled();
    expect(record).toMatchObject({ bytes: KiB + 5, clientGone: undefined, brokenBody: false });
    expect(jest.getTimerCount()).toBe(0);
  });

  it('that is complete ends when it is written, also without memory for more', async () => {
    const { sink, record, onUpstreamEnd } = observed('complete');
    await settle();
    for (const called of [sink.end, onUpstreamEnd]) expect(called).toHaveBeenCalledTimes(1);
    expect(record).toMatchObject({ bytes: KiB * KiB, cutOff: undefined });
  });

  it('whose upstream has been silent for 60 s frees its connection there', async () => {
    const { onCancel } = observed('relayed');
    await pass(60_000);
    expect(onCancel).toHaveBeenCalledTimes(1);
  });

  it('is behind when a chunk has waited for 100 ms, and keeps up when it waits for the upstream', async () => {
    const { permit, stopReading, push, take } = observed('paid');
    stopReading();
    await push(KiB);
    await pass(99);
    expect(permit.memory.bytes).toBe(KEEPS_UP_BYTES);
    await pass(1);
    expect(permit.memory.bytes).toBeGreaterThan(KEEPS_UP_BYTES);
    await pass(10_000);
    expect(permit.memory.bytes).toBeGreaterThan(KEEPS_UP_BYTES);
    await take();
    await pass(100);
    expect(permit.memory.bytes).toBe(KEEPS_UP_BYTES);
  });

  it('does not stand still any more when its reader has taken a chunk, so that it makes no room for itself', async () => {
    const { body, permit, stopReading, push, take } = observed('relayed');
    await push(KiB);
    stopReading();
    await push(KiB);
    await pass(20_000);
    const tryReserveRead = spyOn(permit.memory, 'tryReserveRead').mockImplementation(
      () => body.takenAt === permit.memory.watch.now,
    );
    await take();
    expect(tryReserveRead.mock.results).toEqual([{ type: 'return', value: true }]);
    // Nobody can look at what the kernel has of a connection that is not known.
    expect(tryReserveRead.mock.calls).toEqual([[true]]);
  });

  itWith(
    [LINUX],
    'whose reader was slow ends when the kernel has sent it, so that it can be reset until then',
    async () => {
      const connection = { localPort: 1, address: '127.0.0.1', port: 2 };
      const { body, permit, sink, record, stopReading, push, take, close } = observed('relayed', connection);
      stopReading();
      await push(KiB);
      await pass(100);
      await take();
      await close();
      expect([sink.end.mock.calls.length, permit.memory.bytes]).toEqual([0, KEEPS_UP_BYTES]);
      body.noteQueue(1, body.memory.watch.now);
      await settle();
      expect(sink.end).not.toHaveBeenCalled();
      body.noteQueue(0, body.memory.watch.now);
      await settle();
      expect(sink.end).toHaveBeenCalledTimes(1);
      expect(record.cutOff).toBeUndefined();

      const stopped = observed('relayed', connection);
      stopped.stopReading();
      await stopped.push(KiB);
      await pass(100);
      await stopped.take();
      await stopped.close();
      await pass(300_000);
      await settle();
      expect(stopped.record.cutOff).toBe('stopped reading');
      expect(stopped.sink.close.mock.lastCall?.[0]).toBeInstanceOf(Error);
    },
  );

  it('waits for memory before a read, until there is some', async () => {
    const { permit, sink, record, push } = observed('relayed');
    using tryReserveRead = spyOn(permit.memory, 'tryReserveRead').mockReturnValue(false);
    await push(KiB, KiB);
    await pass(5000);
    // The first read was before.
    expect(sink.write).toHaveBeenCalledTimes(1);
    tryReserveRead.mockReturnValue(true);
    await pass(100);
    expect(sink.write).toHaveBeenCalledTimes(2);
    expect(record.cutOff).toBeUndefined();
  });

  it('waits for memory for 5 minutes, also when its reader has taken all there is', async () => {
    const { body, permit, record, push } = observed('relayed');
    using _ = spyOn(permit.memory, 'tryReserveRead').mockReturnValue(false);
    await push(KiB);
    for (let second = 0; second < 300; second++) {
      expect(record.cutOff).toBeUndefined();
      await pass(1000);
      body.noteQueue(0, permit.memory.watch.now);
    }
    expect(record.cutOff).toBe('no memory');
  });

  it('blames nobody when the process has stood still', async () => {
    const [waits, reads] = [observed('relayed'), observed('relayed')];
    reads.stopReading();
    await reads.push(KiB);
    const later = performance.now() + 600_000;
    using _clock = spyOn(performance, 'now').mockReturnValue(later);
    jest.setSystemTime(Date.now() + 600_000);
    await pass(100);
    for (const { record } of [waits, reads])
      expect(record).toMatchObject({ brokenBody: false, cutOff: undefined });
  });

  // How long it is read, and how it breaks off: relay/streaming.test.ts, faults/ledger.test.ts.
  it('that is paid is read to its end when its client is cut off', async () => {
    const { body, onCancel, onUpstreamEnd, push, close } = observed('paid');
    body.cutOff('room for others');
    await push(KiB, KiB);
    expect(onUpstreamEnd).not.toHaveBeenCalled();
    await close();
    expect(onUpstreamEnd).toHaveBeenCalledTimes(1);
    expect(onCancel).not.toHaveBeenCalled();
  });

  it('that is paid is cancelled after 60 s of silence when its client has disconnected', async () => {
    const { leave, push, record, onCancel, onUpstreamEnd } = observed('paid');
    await leave();
    await pass(59_900);
    // The first of them ends the read that was in flight.
    await push(KiB, KiB);
    await pass(59_900);
    for (const called of [onCancel, onUpstreamEnd]) expect(called).not.toHaveBeenCalled();
    await pass(100);
    for (const called of [onCancel, onUpstreamEnd]) expect(called).toHaveBeenCalledTimes(1);
    expect(record).toMatchObject({ clientGone: 'streaming', brokenBody: false, bytes: KiB });
    expect(jest.getTimerCount()).toBe(0);
  });
});
