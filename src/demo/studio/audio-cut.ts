/** Cuts the beginning off audio of which a part has arrived, so that a stream of it can begin later. */

import { hasOwnFrames } from './audio-parts.ts';
import { announcedBytes, readWavHeader, wavHeaderFor } from './wav-header.ts';

type Piece = Uint8Array<ArrayBuffer>;

export interface AudioCut {
  /** What has arrived from there on. What arrives later continues it. */
  readonly pieces: readonly Piece[];
  /** The time at which it begins, in seconds. */
  readonly from: number;
}

interface ArrivedAudio {
  readonly pieces: readonly Piece[];
  readonly contentType: string;
  /** The rate of audio in frames. Undefined as long as it is not known. */
  readonly bytesPerSecond: number | undefined;
}

/** Room for the header of a WAV file with a few remarks. */
const HEADER_BYTES = 4_096;

/** Cuts at this time, or at the end of what has arrived. Undefined if the format cannot be cut. */
export function cutAudio(audio: ArrivedAudio, seconds: number): AudioCut | undefined {
  const { pieces, contentType, bytesPerSecond } = audio;
  if (seconds <= 0) return { pieces, from: 0 };
  if (!hasOwnFrames(contentType)) return cutWav(pieces, seconds);
  if (bytesPerSecond === undefined) return undefined;
  const at = Math.min(Math.floor(seconds * bytesPerSecond), sizeOf(pieces));
  return { pieces: without(at, pieces), from: at / bytesPerSecond };
}

function cutWav(pieces: readonly Piece[], seconds: number): AudioCut | undefined {
  const header = readWavHeader(beginningOf(pieces));
  if (!header?.bytesPerSecond) return undefined;
  const { bytes, blockBytes, bytesPerSecond } = header;
  const wanted = Math.min(seconds * bytesPerSecond, sizeOf(pieces) - bytes.length);
  const at = wanted - (wanted % blockBytes);
  const announced = announcedBytes(header);
  // A file that was begun before its length was known announces none, or the greatest number.
  const left = announced < at || announced === 0xffff_ffff ? announced : announced - at;
  return {
    pieces: [wavHeaderFor(header, left), ...without(bytes.length + at, pieces)],
    from: at / bytesPerSecond,
  };
}

function sizeOf(pieces: readonly Piece[]): number {
  return pieces.reduce((bytes, { length }) => bytes + length, 0);
}

function beginningOf(pieces: readonly Piece[]): Piece {
  const beginning = new Uint8Array(Math.min(sizeOf(pieces), HEADER_BYTES));
  let at = 0;
  for (const piece of pieces) {
    if (at === beginning.length) break;
    const taken = piece.subarray(0, beginning.length - at);
    beginning.set(taken, at);
    at += taken.length;
  }
  return beginning;
}

function without(bytes: number, pieces: readonly Piece[]): Piece[] {
  let left = bytes;
  const rest: Piece[] = [];
  for (const piece of pieces) {
    if (piece.length > left) rest.push(piece.subarray(left));
    left = Math.max(0, left - piece.length);
  }
  return rest;
}
