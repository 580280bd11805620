/** Streams a body and observes how it ends: Bun's own streams report neither their size nor how they ended. */

import { BEHIND_MS, type BodyMemory, type WatchedBody } from '../admission/body-watch.ts';
import { type Connection, canLook } from '../admission/send-queues.ts';
import type { StreamedBody } from '../http/body.ts';
import { type Chunk, cancelQuietly, drain, SILENCE_MS } from '../http/body-reader.ts';
import { describeCause } from '../http/error-summary.ts';
import type { CutOff, RequestRecord } from '../record/request-record.ts';

/** What a body knows of its exchange. */
interface Client {
  readonly connection: Connection | undefined;
  /** Called once nothing more is read of the upstream, and before Bun may use the connection again. */
  readonly onUpstreamEnd: () => void;
}

/** How long a reader may take nothing. The proxies of `deploy` wait as long. */
export const STOPPED_MS = 300_000;
/** A reader that has left less than this in the kernel needs more soon. */
const DRAINED_BYTES = 128 * 1024;

const EMPTY: Chunk = new Uint8Array();

/**
 * Makes a source of the same bytes, and notes in the record how many are sent and how the body ends. Each chunk is sent
 * before the next one is read. A direct source copies less than any other, and its connection closes at once when it fails.
 */
export class ObservedBody implements WatchedBody {
  readonly source: Bun.DirectUnderlyingSource<Chunk>;
  waitsFor: WatchedBody['waitsFor'] = 'upstream';
  waitsSince: number;
  takenAt: number;
  isComplete = false;
  readonly #body: StreamedBody;
  readonly #record: RequestRecord;
  readonly memory: BodyMemory;
  readonly #client: Client;
  readonly #drainMs: number | undefined;
  #sink: ReadableStreamDirectController | undefined;
  /** Ends the wait for the reader or for memory. */
  #onWaited: (() => void) | undefined;
  /** What the kernel had not sent at the last look, and whether that was below {@link DRAINED_BYTES}. */
  #queuedBytes = 0;
  #isDrained = false;
  /** Whether the last chunk has waited for long. */
  #isSlow = false;
  #isOver = false;

  /** @param drainMs how long a body that is paid for is still read after its client has disconnected; undefined for others */
  constructor(
    body: StreamedBody,
    record: RequestRecord,
    memory: BodyMemory,
    client: Client,
    drainMs?: number,
  ) {
    this.#body = body;
    this.#record = record;
    this.memory = memory;
    this.#client = client;
    this.#drainMs = drainMs;
    this.waitsSince = memory.watch.now;
    this.takenAt = memory.watch.now;
    record.bytes = 0;
    this.source = {
      type: 'direct',
      pull: (sink) => this.#pass(sink).catch((cause) => this.#onUpstreamLost(describeCause(cause))),
      cancel: () => {
        if (this.#isOver) return;
        record.clientGone ??= 'streaming';
        this.#onClientLost();
      },
    };
    memory.watch.add(this);
  }

  get connection(): Connection | undefined {
    return this.#client.connection;
  }

  check(now: number): void {
    const waitedMs = now - this.waitsSince;
    switch (this.waitsFor) {
      case 'upstream':
        this.memory.catchUp();
        if (waitedMs >= SILENCE_MS) this.#onUpstreamLost('stalled');
        return;
      case 'memory':
        if (this.#tryReserveRead()) this.#onWaited?.();
        else if (waitedMs >= STOPPED_MS) this.cutOff('no memory');
        else if (waitedMs >= BEHIND_MS) this.memory.fallBehind();
        return;
      case 'reader':
        if (now - this.takenAt >= STOPPED_MS) this.cutOff('stopped reading');
        else if (waitedMs >= BEHIND_MS && !this.isComplete) this.memory.fallBehind();
    }
  }

  noteQueue(bytes: number, now: number): void {
    if (this.isComplete && bytes === 0) this.#onWaited?.();
    if (bytes === 0 || bytes < this.#queuedBytes) this.takenAt = now;
    this.#queuedBytes = bytes;
    this.#isDrained = bytes < DRAINED_BYTES;
  }

  cutOff(why: CutOff): void {
    this.#record.cutOff = why;
    this.#breakConnection();
    this.#onClientLost();
  }

  async #pass(sink: ReadableStreamDirectController): Promise<void> {
    const { firstChunk, rest } = this.#body;
    this.#sink = sink;
    for (let chunk: Chunk | undefined = firstChunk ?? EMPTY; chunk; ) {
      const taken = this.#write(chunk, sink);
      if (taken) {
        await taken;
        this.takenAt = this.memory.watch.now;
        this.#isSlow = this.takenAt - this.waitsSince >= BEHIND_MS;
      } else this.#isSlow = false;
      const reserved = rest && this.#reserveRead();
      if (reserved) await reserved;
      if (this.#isOver) return;
      this.#noteWaitFor('upstream');
      chunk = (await rest?.read())?.value;
      this.memory.onRead();
      if (this.#isOver) return;
    }
    if (this.#isSlow) await this.#untilSent();
    if (this.#isOver) return;
    this.#finish();
    this.#client.onUpstreamEnd();
    sink.end();
  }

  /**
   * Waits until the kernel has sent what a slow reader leaves there. When Bun closes a connection that nobody reads, the
   * kernel keeps that for minutes; while the body is open, its reader can be reset.
   */
  #untilSent(): Promise<void> | undefined {
    if (!this.connection || !canLook) return undefined;
    this.memory.catchUp();
    this.isComplete = true;
    return this.#waitUntilReady('reader');
  }

  /** Returns a promise when the reader has to be waited for. */
  #write(chunk: Chunk, sink: ReadableStreamDirectController): Promise<void> | undefined {
    const bytes = chunk.byteLength;
    if (bytes === 0) return undefined;
    this.#record.bytes = (this.#record.bytes ?? 0) + bytes;
    const written = sink.write(chunk);
    // Bun has sent or copied the chunk. This frees its memory without waiting for the garbage collector.
    chunk.buffer.transfer(0);
    if (!(written instanceof Promise)) return undefined;
    const taken = this.#waitUntilReady('reader');
    written.then(this.#onWaited);
    return taken;
  }

  /** Returns a promise when there is no memory. */
  #reserveRead(): Promise<void> | undefined {
    const isReserved = this.#isOver || this.#body.rest?.hasArrived || this.#tryReserveRead();
    return isReserved ? undefined : this.#waitUntilReady('memory');
  }

  #tryReserveRead(): boolean {
    // Where the send queue cannot be seen, a chunk that was taken counts as drained.
    const isReserved = this.memory.tryReserveRead(this.#isDrained || !canLook || !this.connection);
    if (isReserved) this.#isDrained = false;
    return isReserved;
  }

  #noteWaitFor(whom: WatchedBody['waitsFor']): void {
    this.waitsFor = whom;
    this.waitsSince = this.memory.watch.now;
    this.takenAt = this.waitsSince;
  }

  #waitUntilReady(whom: WatchedBody['waitsFor']): Promise<void> {
    this.#noteWaitFor(whom);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onWaited = resolve;
    return promise;
  }

  #finish(): void {
    this.#isOver = true;
    this.memory.watch.remove(this);
    this.#onWaited?.();
  }

  #onClientLost(): void {
    this.#finish();
    this.memory.giveBodyUp();
    const { rest } = this.#body;
    if (rest && this.#drainMs !== undefined) void drain(rest, this.#drainMs).then(this.#client.onUpstreamEnd);
    else {
      this.#client.onUpstreamEnd();
      void cancelQuietly(rest);
    }
  }

  #onUpstreamLost(cause: string): void {
    if (this.#isOver) return;
    this.#finish();
    this.#record.brokenBody = true;
    this.#record.cause = cause;
    this.#breakConnection();
    this.#client.onUpstreamEnd();
    void cancelQuietly(this.#body.rest);
  }

  /** Resets the connection, so that a partial body never looks complete. Before `pull` returns, Bun would print the error. */
  #breakConnection(): void {
    queueMicrotask(() => this.#sink?.close(new Error()));
  }
}
