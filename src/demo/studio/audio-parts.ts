/** Cuts audio that arrives into parts that can be decoded by themselves. */

type Piece = Uint8Array<ArrayBuffer>;

export interface AudioPart {
  readonly file: ArrayBuffer;
  /** How many of the arrived bytes are in it. */
  readonly bytes: number;
}

/** Smaller parts are not worth their decoding; larger ones would take too much memory at once. */
const LEAST_BYTES = 32_768;
const MOST_BYTES = 2_097_152;
/** The formats whose frames are decoded by themselves, so that a file may begin with any of them. */
const FRAMES = /^audio\/(?:mpeg|mp3|aac|aacp)\b/;

interface WavHeader {
  readonly bytes: Piece;
  /** The size of a sample of all channels. */
  readonly blockBytes: number;
}

export class AudioParts {
  #pending: Piece[] = [];
  #pendingBytes = 0;
  #wav: WavHeader | undefined;
  readonly #isFrames: boolean;

  constructor(contentType: string) {
    this.#isFrames = FRAMES.test(contentType);
  }

  add(piece: Piece): void {
    this.#pending.push(piece);
    this.#pendingBytes += piece.length;
  }

  /** The next part. Undefined if too little has arrived for one, or if the format cannot be cut. */
  take(): AudioPart | undefined {
    if (this.#pendingBytes < LEAST_BYTES) return undefined;
    let arrived = this.#takePending();
    if (!this.#isFrames && !this.#wav) {
      this.#wav = readWavHeader(arrived);
      arrived = arrived.subarray(this.#wav?.bytes.length ?? 0);
    }
    if (!this.#isFrames && !this.#wav) return undefined;
    const length = arrived.length - (arrived.length % (this.#wav?.blockBytes ?? 1));
    this.#putBack(arrived.subarray(length));
    const part = arrived.subarray(0, length);
    const file = this.#wav ? wavFile(this.#wav.bytes, part) : part.slice().buffer;
    return { file, bytes: length };
  }

  #takePending(): Piece {
    const arrived = new Uint8Array(Math.min(this.#pendingBytes, MOST_BYTES));
    let at = 0;
    while (at < arrived.length) {
      const piece = this.#pending.shift() ?? new Uint8Array();
      const taken = piece.subarray(0, arrived.length - at);
      arrived.set(taken, at);
      at += taken.length;
      if (taken.length < piece.length) this.#pending.unshift(piece.subarray(taken.length));
    }
    this.#pendingBytes -= arrived.length;
    return arrived;
  }

  #putBack(rest: Piece): void {
    this.#pending.unshift(rest);
    this.#pendingBytes += rest.length;
  }
}

/** Everything before the samples. Undefined if this is no WAV file. */
function readWavHeader(file: Piece): WavHeader | undefined {
  const view = new DataView(file.buffer, file.byteOffset, file.length);
  const nameAt = (at: number) => String.fromCharCode(...file.subarray(at, at + 4));
  if (nameAt(0) !== 'RIFF' || nameAt(8) !== 'WAVE') return undefined;
  let blockBytes = 1;
  for (let at = 12; at + 8 <= file.length; at += 8 + view.getUint32(at + 4, true)) {
    if (nameAt(at) === 'data') return { bytes: file.slice(0, at + 8), blockBytes };
    if (nameAt(at) === 'fmt ' && at + 22 <= file.length) blockBytes = view.getUint16(at + 20, true) || 1;
  }
  return undefined;
}

/** The samples as a file of their own, whose header has the sizes of the file that they are from. */
function wavFile(header: Piece, samples: Piece): ArrayBuffer {
  const file = new Uint8Array(header.length + samples.length);
  file.set(header);
  file.set(samples, header.length);
  const view = new DataView(file.buffer);
  view.setUint32(4, file.length - 8, true);
  view.setUint32(header.length - 4, samples.length, true);
  return file.buffer;
}
