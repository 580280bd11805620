/** HTTP/1.1 on a raw socket: sends bytes that no HTTP client would send, and parses what comes back. */

import net from 'node:net';

export type ParsedResponse = NonNullable<ReturnType<typeof parseResponse>>;

/**
 * The request must ask for the connection to be closed; the promise settles when it is. The status is 0 when there was
 * no response. The body is all that followed the headers, with its chunks.
 */
export async function rawRequest(port: number, bytes: string) {
  const connection = new RawConnection(port);
  connection.send(bytes);
  await connection.closed;
  const { status, headers, length } = parseHead(connection.received) ?? { status: 0, headers: [], length: 0 };
  return { status, headers: new Headers(headers), body: connection.received.slice(length) };
}

/** A connection to a server on this machine. All text has one character per byte. */
export class RawConnection {
  readonly closed: Promise<void>;
  isClosed = false;
  /** Whether the server has broken the connection, instead of closing it after a response. */
  isBroken = false;
  /** What has been received since it was last set. */
  received = '';
  readonly #socket: net.Socket;
  #notify = () => {};

  constructor(port: number) {
    this.#socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    // The `close` event follows.
    this.#socket.on('error', (error) => {
      this.isBroken = 'code' in error && error.code === 'ECONNRESET';
    });
    this.#socket.on('data', (data) => {
      this.received += data.toString('latin1');
      this.#notify();
    });
    this.closed = new Promise((resolve) =>
      this.#socket.on('close', () => {
        this.isClosed = true;
        this.#notify();
        resolve();
      }),
    );
  }

  send(bytes: string): void {
    if (!this.isClosed) this.#socket.write(bytes, 'latin1');
  }

  /** Resolves when bytes have been received, when the connection is closed, or after `timeoutMs`. */
  async changed(timeoutMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#notify = resolve;
    const timer = setTimeout(resolve, timeoutMs);
    await promise;
    clearTimeout(timer);
  }

  reset(): void {
    this.isClosed = true;
    this.#socket.resetAndDestroy();
  }

  /** Closes the client's half; what the server still sends is ignored. */
  hangUp(): void {
    this.isClosed = true;
    this.#socket.end();
    this.#notify();
  }
}

/**
 * Parses the first response that is no interim one (1xx): its body without its chunks, and its bytes as they were
 * received. Undefined until it is complete.
 *
 * @throws for a chunk without a valid size
 */
export function parseResponse(received: string, isHead: boolean) {
  const head = parseHead(received);
  if (!head) return undefined;
  const { status, headers, length } = head;
  const after = received.slice(length);
  if (status < 200) return parseResponse(after, isHead);
  const body = parseBody(status, isHead, headers, after);
  return body && { status, headers, body: body.text, bytes: received.slice(0, length + body.length) };
}

/** Undefined until the headers are complete. */
function parseHead(received: string) {
  const end = received.indexOf('\r\n\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? 0);
  if (end < 0 || status === 0) return undefined;
  const headers = received.slice(0, end).split('\r\n').slice(1).map(headerLine);
  return { status, headers, length: end + 4 };
}

/** The name is in lower case. */
function headerLine(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

function parseBody(status: number, isHead: boolean, headers: [string, string][], after: string) {
  if (isHead || status === 204 || status === 304) return { text: '', length: 0 };
  const fields = new Map(headers);
  if (fields.get('transfer-encoding') === 'chunked') return parseChunks(after);
  const declared = fields.get('content-length');
  // To an HTTP/1.0 client a streamed body ends with the connection.
  if (declared === undefined && status < 300) return { text: after, length: after.length };
  const length = Number(declared ?? 0);
  return after.length < length ? undefined : { text: after.slice(0, length), length };
}

/**
 * Returns the bytes of all chunks, and how long they are with their sizes; undefined until the last one is complete.
 *
 * @throws for a chunk without a valid size
 */
function parseChunks(text: string): { readonly text: string; readonly length: number } | undefined {
  let bytes = '';
  for (let at = 0; ; ) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0 && text.length - at <= 10) return undefined;
    const line = text.slice(at, Math.max(lineEnd, 0));
    if (!/^[0-9a-f]{1,8}$/i.test(line)) throw new Error('malformed chunk size');
    const size = Number.parseInt(line, 16);
    const start = lineEnd + 2;
    if (text.length < start + size + 2) return undefined;
    bytes += text.slice(start, start + size);
    at = start + size + 2;
    if (size === 0) return { text: bytes, length: at };
  }
}
