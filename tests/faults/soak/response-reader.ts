/** Parses one HTTP/1.1 response from the bytes of a socket, strictly: a response that breaks off is never complete. */

export interface ResponseHead {
  readonly status: number;
  readonly headers: Headers;
}

/** The bytes that have arrived and are not parsed yet. Each generator yields when it needs more of them. */
export class ReceivedBytes {
  bytes: Buffer = Buffer.alloc(0);

  add(data: Buffer): void {
    this.bytes = this.bytes.length ? Buffer.concat([this.bytes, data]) : data;
  }

  *line(end = '\r\n'): Generator<void, string> {
    let at = this.bytes.indexOf(end);
    for (; at < 0; at = this.bytes.indexOf(end)) yield;
    const text = this.bytes.toString('latin1', 0, at);
    this.bytes = this.bytes.subarray(at + end.length);
    return text;
  }

  *pass(length: number, onBody: (piece: Buffer) => void): Generator<void, void> {
    for (let left = length; left > 0; ) {
      if (this.bytes.length === 0) yield;
      const piece = this.bytes.subarray(0, left);
      this.bytes = this.bytes.subarray(piece.length);
      left -= piece.length;
      onBody(piece);
    }
  }
}

/** @throws Error when the bytes are not a response */
export function* readResponse(
  method: string,
  received: ReceivedBytes,
  onBody: (piece: Buffer) => void,
): Generator<void, ResponseHead> {
  const [statusLine = '', ...lines] = (yield* received.line('\r\n\r\n')).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0);
  if (!status) throw new Error(`not a status line: ${statusLine}`);
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const length = headers.get('content-length');
  if (method === 'HEAD' || status === 204 || status === 304) return { status, headers };
  if (headers.get('transfer-encoding') === 'chunked') yield* readChunks(received, onBody);
  else if (length === null) throw new Error('neither a length nor chunks');
  else yield* received.pass(Number(length), onBody);
  return { status, headers };
}

function* readChunks(received: ReceivedBytes, onBody: (piece: Buffer) => void): Generator<void, void> {
  for (let size = yield* received.line(); size !== '0'; size = yield* received.line()) {
    if (!/^[0-9a-f]+$/i.test(size)) throw new Error(`not a chunk size: ${size.slice(0, 40)}`);
    yield* received.pass(Number.parseInt(size, 16), onBody);
    if ((yield* received.line()) !== '') throw new Error('a chunk is longer than its size says');
  }
  while ((yield* received.line()) !== '');
}
