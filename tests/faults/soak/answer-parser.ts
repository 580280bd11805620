/** Reads one HTTP/1.1 answer from the bytes of a socket, strictly: an answer that breaks off is never a whole one. */

const EMPTY = Buffer.alloc(0);

type State = 'head' | 'body' | 'chunk-size' | 'chunk-end' | 'trailer' | 'done';

export class AnswerParser {
  status = 0;
  headers = new Headers();
  readonly #method: string;
  readonly #onBody: (piece: Buffer) => void;
  #state: State = 'head';
  #chunked = false;
  /** Of the body, or of the chunk under way. */
  #bytesLeft = 0;
  /** A line of which the end has not come. */
  #pending: Buffer = EMPTY;

  constructor(method: string, onBody: (piece: Buffer) => void) {
    this.#method = method;
    this.#onBody = onBody;
  }

  get done(): boolean {
    return this.#state === 'done';
  }

  /** @throws Error when the bytes are no answer, or go on after its end */
  push(data: Buffer): void {
    let rest = this.#pending.length ? Buffer.concat([this.#pending, data]) : data;
    this.#pending = EMPTY;
    while (rest.length) {
      if (this.done) throw new Error(`${rest.length} bytes after the end of the answer`);
      const used = this.#step(rest);
      if (used === 0) {
        this.#pending = Buffer.from(rest);
        return;
      }
      rest = rest.subarray(used);
    }
  }

  /** Takes what belongs to the state; gives how many bytes that were, 0 when more are needed. */
  #step(bytes: Buffer): number {
    switch (this.#state) {
      case 'head':
        return this.#upTo(bytes, '\r\n\r\n', (text) => this.#takeHead(text));
      case 'body':
        return this.#takeBody(bytes);
      case 'chunk-size':
        return this.#upTo(bytes, '\r\n', (line) => this.#takeChunkSize(line));
      case 'chunk-end':
        return this.#upTo(bytes, '\r\n', (line) => this.#takeChunkEnd(line));
      case 'trailer':
        return this.#upTo(bytes, '\r\n', (line) => {
          if (line === '') this.#state = 'done';
        });
      case 'done':
        return 0;
    }
  }

  #upTo(bytes: Buffer, end: string, take: (text: string) => void): number {
    const at = bytes.indexOf(end);
    if (at < 0) return 0;
    take(bytes.toString('latin1', 0, at));
    return at + end.length;
  }

  #takeHead(text: string): void {
    const [statusLine = '', ...lines] = text.split('\r\n');
    this.status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0);
    if (!this.status) throw new Error(`no status line: ${statusLine}`);
    for (const line of lines) {
      const colon = line.indexOf(':');
      this.headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
    }
    this.#state = this.#stateAfterHead();
  }

  #stateAfterHead(): State {
    if (this.#method === 'HEAD' || this.status === 204 || this.status === 304) return 'done';
    this.#chunked = this.headers.get('transfer-encoding') === 'chunked';
    if (this.#chunked) return 'chunk-size';
    const length = this.headers.get('content-length');
    if (length === null) throw new Error('neither a length nor chunks');
    this.#bytesLeft = Number(length);
    return this.#bytesLeft > 0 ? 'body' : 'done';
  }

  #takeBody(bytes: Buffer): number {
    const piece = bytes.subarray(0, this.#bytesLeft);
    this.#bytesLeft -= piece.length;
    this.#onBody(piece);
    if (this.#bytesLeft === 0) this.#state = this.#chunked ? 'chunk-end' : 'done';
    return piece.length;
  }

  #takeChunkSize(line: string): void {
    if (!/^[0-9a-f]+$/i.test(line)) throw new Error(`no chunk size: ${line.slice(0, 40)}`);
    this.#bytesLeft = Number.parseInt(line, 16);
    this.#state = this.#bytesLeft > 0 ? 'body' : 'trailer';
  }

  #takeChunkEnd(line: string): void {
    if (line !== '') throw new Error('a chunk is longer than it says');
    this.#state = 'chunk-size';
  }
}
