/** One connection to the gateway: sends a request in its pieces, and waits for what comes back. */

import net from 'node:net';
import { type Answer, headerOf, readAnswers } from './answer-reader.ts';
import type { FuzzRequest } from './fuzz-request.ts';

export interface Exchange {
  readonly answers: readonly Answer[];
  /** What came after the last complete answer. */
  readonly rest: string;
  readonly end: 'answered' | 'closed' | 'silent';
}

/** A complete request must be answered within this. */
const ANSWER_MS = 5000;
/** Nobody knows whether the rest of these is waited for. */
const SILENCE_MS = 100;
/** For a second answer, to what may have become two requests. */
const AFTERMATH_MS = 3;

export class Connection {
  readonly #socket: net.Socket;
  #received = '';
  #isClosed = false;
  #notify = () => {};
  /** The indexes of the requests that it has carried. */
  readonly carried: number[] = [];

  constructor(port: number) {
    this.#socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('error', () => {});
    this.#socket.on('data', (data) => {
      this.#received += data.toString('latin1');
      this.#notify();
    });
    this.#socket.on('close', () => {
      this.#isClosed = true;
      this.#notify();
    });
  }

  async exchange(request: FuzzRequest): Promise<Exchange> {
    this.carried.push(request.index);
    this.#received = '';
    await this.#send(request);
    const isHead = request.bytes.startsWith('HEAD ');
    const deadline = performance.now() + (request.isFramed ? ANSWER_MS : SILENCE_MS);
    for (;;) {
      const read = readAnswers(this.#received, isHead);
      if (this.#isClosed) return { ...read, end: read.answers.length ? 'answered' : 'closed' };
      if (read.answers.length) {
        if (!request.isFramed) await Bun.sleep(AFTERMATH_MS);
        return { ...readAnswers(this.#received, isHead), end: 'answered' };
      }
      const left = deadline - performance.now();
      if (left <= 0) return { ...read, end: 'silent' };
      await this.#changed(left);
    }
  }

  /** Whether the next request may go over it. */
  isReusable({ end, answers, rest }: Exchange): boolean {
    const [answer] = answers;
    return end === 'answered' && !this.#isClosed && rest === '' && answer !== undefined && keepsOpen(answer);
  }

  close(): void {
    this.#socket.resetAndDestroy();
  }

  async #send({ bytes, cuts }: FuzzRequest): Promise<void> {
    let start = 0;
    for (const cut of [...cuts, bytes.length]) {
      if (this.#isClosed) return;
      this.#socket.write(bytes.slice(start, cut), 'latin1');
      start = cut;
      if (start < bytes.length) await Bun.sleep(1);
    }
  }

  async #changed(timeoutMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#notify = resolve;
    const timer = setTimeout(resolve, timeoutMs);
    await promise;
    clearTimeout(timer);
  }
}

/** An answer of Bun's own has no headers, and ends the connection. */
function keepsOpen(answer: Answer): boolean {
  return answer.headers.length > 1 && headerOf(answer, 'connection')?.toLowerCase() !== 'close';
}
