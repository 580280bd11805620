/** A track whose audio arrives in this page: keeps its bytes, and streams them to the player. */

import type { LiveAudio, LiveTrack } from '../../client/live-audio/live-audio.ts';
import type { Track } from './playback.ts';

type Piece = Uint8Array<ArrayBuffer>;

export class ArrivingTrack {
  readonly track: Track;
  readonly #contentType: string;
  readonly #liveAudio: LiveAudio;
  readonly #pieces: Piece[] = [];
  #live: LiveTrack | undefined;

  constructor(track: Track, contentType: string, liveAudio: LiveAudio) {
    this.track = track;
    this.#contentType = contentType;
    this.#liveAudio = liveAudio;
  }

  /** What has arrived. */
  get audio(): Blob {
    return new Blob(this.#pieces);
  }

  /** Begins a stream of the whole track, and ends the one before. Returns its address, if there can be one. */
  listen(): string | undefined {
    this.#live?.break();
    this.#live = this.#liveAudio.begin(this.#contentType);
    for (const piece of this.#pieces) this.#live?.add(piece);
    return this.#live?.url;
  }

  add(piece: Piece): void {
    this.#pieces.push(piece);
    this.#live?.add(piece);
  }

  end(): void {
    this.#live?.end();
  }

  /** The track will not be complete. */
  break(): void {
    this.#live?.break();
  }
}
