/**
 * Outlines a track while it arrives. Each part is decoded once, by the browser's own thread, and at most one in a
 * second: for ten minutes of audio this costs what decoding the file does, and never delays the sound.
 */

import { AudioParts } from './audio-parts.ts';
import { decodeAt8kHz, loudestOf, OUTLINE_BARS, type Peaks, SAMPLE_RATE } from './peaks.ts';

type Piece = Uint8Array<ArrayBuffer>;

const INTERVAL_MS = 1_000;
/** A track that is longer than it was ordered is not complete for that. */
const MOST_SHARE = 0.99;

export class GrowingOutline {
  readonly #seconds: number;
  readonly #parts: AudioParts;
  readonly #onGrowth: (peaks: Peaks) => void;
  readonly #bars = new Float32Array(OUTLINE_BARS);
  #arrivedBytes = 0;
  #decodedBytes = 0;
  #decodedSamples = 0;
  #isBusy = false;
  #isOver = false;

  /** @param seconds the ordered length */
  constructor(seconds: number, contentType: string, onGrowth: (peaks: Peaks) => void) {
    this.#seconds = seconds;
    this.#parts = new AudioParts(contentType);
    this.#onGrowth = onGrowth;
  }

  /** Relative to the loudest part so far. Undefined if nothing is decoded yet. */
  get peaks(): Peaks | undefined {
    if (this.#decodedSamples === 0) return undefined;
    const loudest = Math.max(...this.#bars) || 1;
    return Array.from(this.#bars, (bar) => bar / loudest);
  }

  /** Undefined until something is decoded. */
  get bytesPerSecond(): number | undefined {
    if (this.#decodedSamples === 0) return undefined;
    return this.#decodedBytes / (this.#decodedSamples / SAMPLE_RATE);
  }

  /** How much of the track has arrived. Undefined until its bit rate is known. */
  get share(): number | undefined {
    const { bytesPerSecond } = this;
    if (bytesPerSecond === undefined) return undefined;
    return Math.min(this.#arrivedBytes / bytesPerSecond / this.#seconds, MOST_SHARE);
  }

  add(piece: Piece): void {
    this.#arrivedBytes += piece.length;
    this.#parts.add(piece);
    if (!this.#isBusy) void this.#decodeNext();
  }

  /** From now on, nothing more is decoded or drawn. */
  stop(): void {
    this.#isBusy = true;
    this.#isOver = true;
  }

  async #decodeNext(): Promise<void> {
    const part = this.#parts.take();
    if (!part) return;
    this.#isBusy = true;
    const samples = await decodeAt8kHz(part.file);
    // A browser that cannot decode a part cannot decode the next one either.
    if (!samples || this.#isOver) return;
    this.#draw(samples);
    this.#decodedBytes += part.bytes;
    this.#onGrowth(this.peaks ?? []);
    setTimeout(() => {
      this.#isBusy = this.#isOver;
      if (!this.#isOver) void this.#decodeNext();
    }, INTERVAL_MS);
  }

  #draw(samples: Float32Array): void {
    const samplesPerBar = (this.#seconds * SAMPLE_RATE) / OUTLINE_BARS;
    let from = 0;
    while (from < samples.length) {
      const bar = Math.floor(this.#decodedSamples / samplesPerBar);
      // Rounding may leave nothing of a bar.
      const left = Math.max(1, Math.ceil((bar + 1) * samplesPerBar - this.#decodedSamples));
      const part = samples.subarray(from, from + left);
      this.#bars[bar] = Math.max(this.#bars[bar] ?? 0, loudestOf(part));
      this.#decodedSamples += part.length;
      from += part.length;
    }
  }
}
