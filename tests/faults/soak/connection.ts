/** A client on a raw socket: it can read slowly or disconnect at any moment, and one process can have thousands. */

import type { Socket } from 'bun';
import { ReceivedBytes, type ResponseHead, readResponse } from './response-reader.ts';

export interface ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface ClientResponse extends ResponseHead {
  /** Empty when `onBody` takes the pieces. */
  readonly body: Buffer;
}

export interface ReadOptions {
  readonly onBody?: (piece: Buffer) => void;
  /** Called with the bytes of each read before the last; nothing more is read until it resolves. */
  readonly pace?: (bytes: number) => Promise<void>;
}

interface Exchange {
  readonly take: (socket: Socket, data: Buffer) => void;
  readonly fail: (error: unknown) => void;
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
    connection.#socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (socket, data) => connection.#take(socket, data),
        drain: () => connection.#flush(),
        close: () => connection.#end(new Error('closed before the response was complete')),
        error: (_, error) => connection.#end(error),
      },
    });
    return connection;
  }

  get isOpen(): boolean {
    return this.#socket !== undefined;
  }

  /**
   * Sends one request at a time and keeps the connection.
   *
   * @throws Error when the connection closes before the response is complete, or the response is malformed
   */
  send(request: ClientRequest, { onBody, pace }: ReadOptions = {}): Promise<ClientResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<ClientResponse>();
    const pieces: Buffer[] = [];
    const received = new ReceivedBytes();
    const reading = readResponse(
      request.method,
      received,
      onBody ?? ((piece) => pieces.push(Buffer.from(piece))),
    );
    const take = (socket: Socket, data: Buffer) => {
      received.add(data);
      const { done, value } = reading.next();
      if (done) {
        if (received.bytes.length) throw new Error('bytes after the end of the response');
        this.#exchange = undefined;
        resolve({ ...value, body: Buffer.concat(pieces) });
      } else if (pace) {
        socket.pause();
        void pace(data.length).then(() => socket.resume());
      }
    };
    this.#exchange = { take, fail: reject };
    if (this.#socket) this.write(this.bytesOf(request));
    else reject(new Error('the connection is closed'));
    return promise;
  }

  bytesOf({ method, path, headers = {}, body = '' }: ClientRequest): Buffer {
    const length = body ? { 'content-length': String(Buffer.byteLength(body)) } : {};
    const lines = Object.entries({ host: this.#host, ...headers, ...length });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    return Buffer.from(`${method} ${path} HTTP/1.1\r\n${head}\r\n${body}`);
  }

  write(bytes: Buffer): void {
    this.#unsent = bytes;
    this.#flush();
  }

  /** Closes the client's half of the connection and reads no more. */
  hangUp(): void {
    this.#socket?.end();
    this.#end(new Error('the client has hung up'));
  }

  /** Resets the connection. */
  cut(): void {
    this.#socket?.terminate();
    this.#end(new Error('the client has disconnected'));
  }

  #flush(): void {
    if (!this.#unsent || !this.#socket) return;
    const written = this.#socket.write(this.#unsent);
    this.#unsent = written < this.#unsent.length ? this.#unsent.subarray(Math.max(0, written)) : undefined;
  }

  #take(socket: Socket, data: Buffer): void {
    try {
      if (!this.#exchange) throw new Error('bytes without a request');
      this.#exchange.take(socket, data);
    } catch (error) {
      this.#end(error);
      socket.terminate();
    }
  }

  #end(error: unknown): void {
    this.#socket = undefined;
    this.#exchange?.fail(error);
    this.#exchange = undefined;
  }
}
