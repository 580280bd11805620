/** Cuts audio that arrives into parts that can be decoded by themselves. */

import { readWavHeader, type WavHeader, wavHeaderFor } from './wav-header.ts';

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

export function hasOwnFrames(contentType: string): boolean {
  return FRAMES.test(contentType);
}

export class AudioParts {
  #pending: Piece[] = [];
  #pendingBytes = 0;
  #wav: WavHeader | undefined;
  readonly #isFrames: boolean;

  constructor(contentType: string) {
    this.#isFrames = hasOwnFrames(contentType);
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
    return { file: this.#fileOf(part), bytes: length };
  }

  #fileOf(part: Piece): ArrayBuffer {
    const header = this.#wav ? wavHeaderFor(this.#wav, part.length) : new Uint8Array();
    const file = new Uint8Array(header.length + part.length);
    file.set(header);
    file.set(part, header.length);
    return file.buffer;
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
