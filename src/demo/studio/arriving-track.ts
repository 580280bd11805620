/** A track whose audio arrives in this page: keeps its bytes, and streams them to the player. */

import type { LiveAudio, LiveTrack } from '../../client/live-audio/live-audio.ts';
import { cutAudio } from './audio-cut.ts';
import { GrowingOutline } from './growing-outline.ts';
import type { Peaks } from './peaks.ts';
import type { LiveSource, Track } from './playback.ts';

type Piece = Uint8Array<ArrayBuffer>;

export class ArrivingTrack {
  readonly track: Track;
  readonly #contentType: string;
  readonly #liveAudio: LiveAudio;
  readonly #pieces: Piece[] = [];
  readonly #outline: GrowingOutline;
  #live: LiveTrack | undefined;

  constructor(track: Track, contentType: string, liveAudio: LiveAudio, onGrowth: (peaks: Peaks) => void) {
    this.#outline = new GrowingOutline(track.seconds, contentType, onGrowth);
    this.track = track;
    this.#contentType = contentType;
    this.#liveAudio = liveAudio;
  }

  /** What has arrived. */
  get audio(): Blob {
    return new Blob(this.#pieces);
  }

  /** The outline of that. Undefined if there is none yet. */
  get peaks(): Peaks | undefined {
    return this.#outline.peaks;
  }

  /** How much of the track that is, from 0 to 1. Undefined if that is not known. */
  get share(): number | undefined {
    return this.#outline.share;
  }

  /** Begins a stream of the track at this time, as far as that is here, and ends the one before. */
  listen(seconds: number): LiveSource | undefined {
    const { bytesPerSecond } = this.#outline;
    const audio = { pieces: this.#pieces, contentType: this.#contentType, bytesPerSecond };
    const cut = cutAudio(audio, seconds);
    const live = cut && this.#liveAudio.begin(this.#contentType);
    if (!live) return undefined;
    this.#live?.break();
    this.#live = live;
    for (const piece of cut.pieces) live.add(piece);
    return { url: live.url, from: cut.from };
  }

  add(piece: Piece): void {
    this.#pieces.push(piece);
    this.#live?.add(piece);
    this.#outline.add(piece);
  }

  end(): void {
    this.#outline.stop();
    this.#live?.end();
  }

  /** The track will not be complete. */
  break(): void {
    this.#outline.stop();
    this.#live?.break();
  }
}
