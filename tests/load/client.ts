/** A client that stops reading if a test wants it, and compares what arrives with what was sent to it. */

import type { Socket } from 'node:net';
import { openSocket } from './raw-client.ts';

export interface Plan {
  readonly request: string;
  /** What follows the head, as far as anybody takes it. */
  readonly upload?: Uint8Array;
  /** The end of the request, which is kept back until the client goes on. */
  readonly rest?: string;
  /** The whole body; without it, any successful response will do. */
  readonly body?: Uint8Array | undefined;
  /** Whether it reads nothing after the first bytes, until it goes on. */
  readonly stops?: boolean;
}

/** How a response has ended: `refused` is a 429 or 503 that says when to come back, `left` was still in flight at the end. */
type Ending = 'whole' | 'refused' | 'broken' | 'left';

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
  /** The first bytes have arrived, or the end. */
  readonly begun = this.#begun.promise;
  readonly ended = this.#ended.promise;
  readonly #response = this.#read();
  #socket: Socket | undefined;
  #sentAt = 0;
  #stops: boolean;
  #unread: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#stops = plan.stops ?? false;
    this.#response.next();
  }

  async connect(url: URL): Promise<void> {
    const socket = openSocket(url);
    socket.on('data', (data: Buffer) => this.#arrived(data));
    socket.on('close', () => this.#end('broken', 'closed'));
    this.#socket = socket;
    const connected = new Promise((resolve) => socket.once('connect', resolve));
    await Promise.race([connected, this.ended]);
  }

  send(): void {
    this.#sentAt = performance.now();
    this.#socket?.write(this.#plan.request, 'latin1');
    if (this.#plan.upload) this.#socket?.write(this.#plan.upload);
  }

  /** Sends the rest of the request, and reads the rest of the response as it comes. */
  goOn(): void {
    this.#stops = false;
    this.#socket?.write(this.#plan.rest ?? '', 'latin1');
    this.#socket?.resume();
  }

  /** Resets the connection. */
  [Symbol.dispose](): void {
    this.#end('left', 'in flight');
    this.#socket?.resetAndDestroy();
  }

  #arrived(data: Buffer): void {
    if (Number.isNaN(this.firstByteMs)) this.firstByteMs = performance.now() - this.#sentAt;
    if (this.#stops) this.#socket?.pause();
    this.#response.next(data);
    this.#begun.resolve();
  }

  /** Reads one response. It yields whenever it needs more bytes, and is given them. */
  *#read(): Generator<undefined, void, Buffer> {
    const [head, status] = yield* this.#match(HEAD, 16_384);
    this.seen = head;
    const isSuccess = Number(status) < 300;
    const expected = isSuccess ? this.#plan.body : undefined;
    const isChunked = /^transfer-encoding: *chunked/im.test(head);
    let size = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    do {
      if (isChunked) size = Number.parseInt((yield* this.#match(CHUNK, 64))[1] ?? '', 16);
      yield* this.#take(size, expected);
    } while (isChunked && size > 0);
    const isWhole = isSuccess && this.#at === (expected?.length ?? this.#at);
    const isRefused = !isSuccess && /\r\nretry-after: \d/i.test(head);
    this.#end(isWhole ? 'whole' : isRefused ? 'refused' : 'broken', 'complete');
  }

  *#take(length: number, expected: Uint8Array | undefined): Generator<undefined, void, Buffer> {
    for (let left = length; left > 0; ) {
      while (this.#unread.length === 0) this.#unread = yield;
      const piece = this.#unread.subarray(0, left);
      const isRight = !expected || piece.equals(expected.subarray(this.#at, this.#at + piece.length));
      this.#at += piece.length;
      if (!isRight) this.#end('broken', 'other bytes');
      this.#unread = this.#unread.subarray(piece.length);
      left -= piece.length;
    }
  }

  /** Takes what matches from the first bytes, once they have arrived. */
  *#match(pattern: RegExp, most: number): Generator<undefined, RegExpExecArray, Buffer> {
    for (;;) {
      const found = pattern.exec(this.#unread.toString('latin1', 0, most));
      if (!found) this.#unread = Buffer.concat([this.#unread, yield]);
      else {
        this.#unread = this.#unread.subarray(found[0].length);
        return found;
      }
    }
  }

  #end(ending: Ending, why: string): void {
    if (this.ending) return;
    this.ending = ending;
    this.seen = `${why} after ${this.#at} bytes of ${this.seen.split('\r\n')[0]}`;
    this.#begun.resolve();
    this.#ended.resolve();
  }
}
