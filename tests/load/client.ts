/** A client whose reading a test controls, and who compares what arrives with what was sent to it. */

import { readSync } from 'node:fs';
import type { Socket } from 'bun';

export interface Plan {
  readonly request: string;
  /** The end of the request, which is kept back until the client goes on. */
  readonly rest?: string;
  /** The whole body; without it, any successful response will do. */
  readonly body?: Uint8Array | undefined;
  /** Bytes per second after the first ones, until the client goes on. */
  readonly reads: number;
}

/** A pace: as it comes, or not at all. */
export const AS_IT_COMES = Number.POSITIVE_INFINITY;
export const STOPS = 0;

/** How a response has ended: `refused` is a 429 or 503 that says when to come back, `left` was still in flight at the end. */
export type Ending = 'whole' | 'refused' | 'broken' | 'left';

const READ_EVERY_MS = 50;
const LEAST_READ = 2048;
const MOST_READ = 64 * 1024;
const HEAD = /^HTTP\/1\.1 (\d+) .*?\r\n\r\n/s;
const CHUNK = /^(?:\r\n)?([0-9a-f]+)\r\n/i;

export class Client {
  /** Undefined while it is in flight. */
  ending: Ending | undefined;
  /** What has arrived, to explain a broken response. */
  seen = '';
  firstByteMs = Number.NaN;
  readonly #plan: Plan;
  readonly #begun = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #scratch = Buffer.alloc(MOST_READ);
  #socket: Socket | undefined;
  #unsent: Buffer = Buffer.alloc(0);
  #sentAt = 0;
  #timer: Timer | undefined;
  #goesOn = false;
  // The state of the response.
  #unread: Buffer = Buffer.alloc(0);
  #status = 0;
  #isChunked = false;
  #left = 0;
  #at = 0;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  /** The first bytes have arrived, or the end. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  async connect({ hostname, port }: URL): Promise<void> {
    const closed = () => this.#end('broken');
    const socket = {
      data: (_: Socket, data: Buffer) => this.#arrived(data),
      drain: () => this.#flush(),
      close: closed,
      error: closed,
      connectError: closed,
    };
    this.#socket = await Bun.connect({ hostname, port: Number(port), socket }).catch(() => undefined);
    if (!this.#socket) closed();
  }

  send(): void {
    this.#sentAt = performance.now();
    this.#write(this.#plan.request);
  }

  /** Sends the rest of the request, and reads the rest of the response as it comes. */
  goOn(): void {
    this.#goesOn = true;
    clearInterval(this.#timer);
    this.#write(this.#plan.rest ?? '');
    this.#socket?.resume();
  }

  /** Resets the connection. */
  [Symbol.dispose](): void {
    this.#end('left', 'in flight');
    this.#socket?.terminate();
  }

  #write(text: string): void {
    this.#unsent = Buffer.concat([this.#unsent, Buffer.from(text, 'latin1')]);
    this.#flush();
  }

  #flush(): void {
    const sent = this.#socket?.write(this.#unsent) ?? 0;
    this.#unsent = this.#unsent.subarray(Math.max(0, sent));
  }

  #arrived(data: Buffer): void {
    if (this.#at === 0 && !this.#status) this.#pause();
    this.#take(data);
    if (Number.isNaN(this.firstByteMs)) this.firstByteMs = performance.now() - this.#sentAt;
    this.#begun.resolve();
  }

  /** Bun reads as much as there is, so that a pace needs reads of its own. */
  #pause(): void {
    const { reads } = this.#plan;
    if (this.#goesOn || reads === AS_IT_COMES) return;
    this.#socket?.pause();
    if (reads === STOPS) return;
    const since = performance.now();
    let taken = 0;
    this.#timer = setInterval(() => {
      const due = Math.floor((reads * (performance.now() - since)) / 1000) - taken;
      if (due < LEAST_READ) return;
      const data = this.#readNow(Math.min(due, MOST_READ));
      taken += data.length;
      if (data.length > 0) this.#take(data);
    }, READ_EVERY_MS);
  }

  #readNow(most: number): Buffer {
    // Bun does not declare the descriptor.
    const descriptor = Number(Object(this.#socket).fd);
    if (this.ending || !(descriptor > 0)) return Buffer.alloc(0);
    try {
      return Buffer.from(this.#scratch.subarray(0, readSync(descriptor, this.#scratch, 0, most, null)));
    } catch {
      // There is nothing to read, or the connection was reset, which Bun reports.
      return Buffer.alloc(0);
    }
  }

  #take(data: Buffer): void {
    this.#unread = this.#unread.length > 0 ? Buffer.concat([this.#unread, data]) : data;
    while (!this.ending && this.#unread.length > 0 && this.#takePart());
  }

  /** @returns false when its end has not arrived */
  #takePart(): boolean {
    if (!this.#status) return this.#takeHead();
    if (this.#left === 0) return this.#takeChunkSize();
    this.#takePiece();
    return true;
  }

  #takeHead(): boolean {
    const [head, status] = HEAD.exec(this.#unread.toString('latin1', 0, 16_384)) ?? [];
    if (!head) return false;
    this.seen = head;
    this.#status = Number(status);
    this.#isChunked = /^transfer-encoding: *chunked/im.test(head);
    this.#left = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    this.#unread = this.#unread.subarray(head.length);
    if (this.#left === 0 && !this.#isChunked) this.#complete();
    return true;
  }

  #takeChunkSize(): boolean {
    const [start, size = ''] = CHUNK.exec(this.#unread.toString('latin1', 0, 64)) ?? [];
    if (!start) return false;
    this.#left = Number.parseInt(size, 16);
    this.#unread = this.#unread.subarray(start.length);
    if (this.#left === 0) this.#complete();
    return true;
  }

  #takePiece(): void {
    const piece = this.#unread.subarray(0, this.#left);
    const from = this.#at;
    this.#at += piece.length;
    this.#left -= piece.length;
    this.#unread = this.#unread.subarray(piece.length);
    const { body } = this.#plan;
    const isOther = body && this.#status < 300 && !piece.equals(body.subarray(from, this.#at));
    if (isOther) this.#end('broken', 'other bytes');
    else if (this.#left === 0 && !this.#isChunked) this.#complete();
  }

  #complete(): void {
    const isWhole = this.#at === (this.#plan.body?.length ?? this.#at);
    if (this.#status < 300) this.#end(isWhole ? 'whole' : 'broken', 'complete');
    else this.#end(/\r\nretry-after: \d/i.test(this.seen) ? 'refused' : 'broken', 'complete');
  }

  #end(ending: Ending, why = 'closed'): void {
    if (this.ending) return;
    clearInterval(this.#timer);
    this.ending = ending;
    this.seen = `${why} after ${this.#at} bytes of ${this.seen.split('\r\n')[0]}`;
    this.#begun.resolve();
    this.#ended.resolve();
  }
}
