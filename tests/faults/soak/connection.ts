/** A client on a raw socket: it can read slowly, break off at any moment, and there can be thousands in a process. */

import type { Socket } from 'bun';
import { AnswerParser } from './answer-parser.ts';

export interface ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Empty when the pieces went elsewhere. */
  readonly body: Buffer;
}

export interface ReadOptions {
  /** Takes the pieces of the body instead of the answer. */
  readonly onBody?: (piece: Buffer) => void;
  /** Called with what a step has brought; nothing more is read until it resolves. */
  readonly pace?: (bytes: number) => Promise<void>;
}

interface Exchange {
  readonly parser: AnswerParser;
  readonly pace: ReadOptions['pace'];
  readonly settle: (error?: unknown) => void;
}

export class Connection {
  readonly #host: string;
  #socket: Socket | undefined;
  #unsent: Buffer | undefined;
  #exchange: Exchange | undefined;

  private constructor(host: string) {
    this.#host = host;
  }

  /** @throws Error when nothing listens there */
  static async open(url: string): Promise<Connection> {
    const { hostname, port, host } = new URL(url);
    const connection = new Connection(host);
    await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        open: (socket) => {
          connection.#socket = socket;
        },
        data: (socket, data) => connection.#take(socket, data),
        drain: () => connection.#flush(),
        close: () => connection.#gone(new Error('closed before the answer was whole')),
        error: (_, error) => connection.#gone(error),
      },
    });
    return connection;
  }

  get isOpen(): boolean {
    return this.#socket !== undefined;
  }

  /**
   * One request and its answer, one at a time; the connection is kept.
   *
   * @throws Error when the connection is closed before the answer is whole, or the answer is malformed
   */
  send(request: ClientRequest, { onBody, pace }: ReadOptions = {}): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const pieces: Buffer[] = [];
    const parser = new AnswerParser(request.method, onBody ?? ((piece) => pieces.push(Buffer.from(piece))));
    const settle = (error?: unknown) => {
      this.#exchange = undefined;
      if (error !== undefined) reject(error);
      else resolve({ status: parser.status, headers: parser.headers, body: Buffer.concat(pieces) });
    };
    this.#exchange = { parser, pace, settle };
    if (this.#socket) this.write(this.bytesOf(request));
    else settle(new Error('the connection is closed'));
    return promise;
  }

  bytesOf({ method, path, headers = {}, body }: ClientRequest): Buffer {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const length = body === undefined ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`;
    return Buffer.from(
      `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${lines.join('')}${length}\r\n${body ?? ''}`,
    );
  }

  write(bytes: Buffer): void {
    this.#unsent = bytes;
    this.#flush();
  }

  /** Says that no more will come, and reads no more either. */
  hangUp(): void {
    this.#socket?.end();
    this.#gone(new Error('hung up by the client'));
  }

  /** Ends the connection now, with what is under way on it. */
  cut(): void {
    this.#socket?.terminate();
    this.#gone(new Error('cut by the client'));
  }

  #flush(): void {
    if (!this.#unsent || !this.#socket) return;
    const written = this.#socket.write(this.#unsent);
    this.#unsent = written < this.#unsent.length ? this.#unsent.subarray(Math.max(0, written)) : undefined;
  }

  #take(socket: Socket, data: Buffer): void {
    const exchange = this.#exchange;
    if (!exchange) {
      this.cut();
      return;
    }
    try {
      exchange.parser.push(data);
    } catch (error) {
      exchange.settle(error);
      this.cut();
      return;
    }
    if (exchange.parser.done) exchange.settle();
    else if (exchange.pace) {
      socket.pause();
      void exchange.pace(data.length).then(() => socket.resume());
    }
  }

  #gone(error: Error): void {
    this.#socket = undefined;
    this.#exchange?.settle(error);
  }
}
