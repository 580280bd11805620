/** What has arrived of a creation's audio, and whether the response to a range continues it. */

export type Piece = Uint8Array<ArrayBuffer>;

/** Enough to tell two tracks apart: it is compared where two responses meet and no validator is known. */
const TAIL_BYTES = 1_024;
const CONTENT_RANGE = /^bytes (\d+)-(\d+)\/(\d+|\*)$/;

export class ArrivedAudio {
  bytes = 0;
  /** Undefined until a response has named it. */
  totalBytes: number | undefined;
  /** A strong validator. @see RFC 9110 section 13.1.5: a weak one must not be used for ranges */
  #etag: string | undefined;
  /** The current response's validator, which says nothing of what came before until the bytes were compared. */
  #offeredEtag: string | undefined;
  #tail: Piece = new Uint8Array();
  /** The position in the audio of the current response's next byte. */
  #position = 0;
  /** Where the current response is to end. 0 when it has not said so. */
  #announcedEnd = 0;

  get isWhole(): boolean {
    return this.bytes === this.totalBytes;
  }

  /** Whether the current response has ended before the audio, as far as that is known. */
  get isCutShort(): boolean {
    return this.totalBytes === undefined ? this.#position < this.#announcedEnd : !this.isWhole;
  }

  /** The request for the rest. Without a validator it begins with bytes that are here, so that they can be compared. */
  rangeHeaders(): Record<string, string> {
    const range = `bytes=${this.#restBegins()}-`;
    return this.#etag === undefined ? { range } : { range, 'if-range': this.#etag };
  }

  /** Returns whether the response continues the same audio, and notes what it says of the whole. */
  continues({ status, headers }: Response): boolean {
    const [, first, last, total] = CONTENT_RANGE.exec(headers.get('content-range') ?? '') ?? [];
    if (status !== 206 || Number(first) !== this.#restBegins()) return false;
    const totalBytes = total === '*' ? undefined : Number(total);
    const etag = headers.get('etag') ?? undefined;
    if (this.totalBytes !== undefined && totalBytes !== this.totalBytes) return false;
    if (this.#etag !== undefined && etag !== this.#etag) return false;
    this.#position = Number(first);
    this.#announcedEnd = Number(last) + 1;
    this.totalBytes ??= totalBytes;
    this.#offeredEtag = etag?.startsWith('W/') ? undefined : etag;
    return true;
  }

  /** Returns what is new in the response's next piece; undefined when the piece is of other audio. */
  add(piece: Piece): Piece | undefined {
    const known = Math.min(this.bytes - this.#position, piece.length);
    const from = this.#tail.length - (this.bytes - this.#position);
    for (let index = 0; index < known; index++) {
      if (piece[index] !== this.#tail[from + index]) return undefined;
    }
    const fresh = piece.subarray(known);
    this.#position += piece.length;
    this.bytes += fresh.length;
    if (this.bytes > (this.totalBytes ?? this.bytes)) return undefined;
    if (fresh.length > 0) this.#etag ??= this.#offeredEtag;
    this.#keepTail(fresh);
    return fresh;
  }

  #restBegins(): number {
    return this.bytes - (this.#etag === undefined ? this.#tail.length : 0);
  }

  /** Copies it, because whoever reads the audio may transfer its memory. */
  #keepTail(fresh: Piece): void {
    const tail = new Uint8Array(Math.min(this.#tail.length + fresh.length, TAIL_BYTES));
    const last = fresh.subarray(-tail.length);
    const kept = tail.length - last.length;
    if (kept > 0) tail.set(this.#tail.subarray(-kept));
    tail.set(last, kept);
    this.#tail = tail;
  }
}
