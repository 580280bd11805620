/** Reads the header of a WAV file, and writes one for a part of its samples. */

type Piece = Uint8Array<ArrayBuffer>;

export interface WavHeader {
  /** Everything before the samples. */
  readonly bytes: Piece;
  /** The size of a sample of all channels. */
  readonly blockBytes: number;
  readonly bytesPerSecond: number;
}

/** @param file begins with the header. Returns undefined if this is no WAV file, or if its header is not complete. */
export function readWavHeader(file: Piece): WavHeader | undefined {
  const view = new DataView(file.buffer, file.byteOffset, file.length);
  const nameAt = (at: number) => String.fromCharCode(...file.subarray(at, at + 4));
  if (nameAt(0) !== 'RIFF' || nameAt(8) !== 'WAVE') return undefined;
  let format = { bytesPerSecond: 0, blockBytes: 1 };
  // Chunks begin at even places.
  const roomAt = (at: number) => 2 * Math.ceil(view.getUint32(at + 4, true) / 2);
  for (let at = 12; at + 8 <= file.length; at += 8 + roomAt(at)) {
    if (nameAt(at) === 'data') return { bytes: file.slice(0, at + 8), ...format };
    if (nameAt(at) === 'fmt ' && at + 22 <= file.length)
      format = {
        bytesPerSecond: view.getUint32(at + 16, true),
        blockBytes: view.getUint16(at + 20, true) || 1,
      };
  }
  return undefined;
}

/** The header of a file with so many bytes of these samples. */
export function wavHeaderFor({ bytes }: WavHeader, sampleBytes: number): Piece {
  const header = bytes.slice();
  const view = new DataView(header.buffer);
  view.setUint32(4, header.length - 8 + sampleBytes, true);
  view.setUint32(header.length - 4, sampleBytes, true);
  return header;
}

/** How many bytes of samples a file announces. */
export function announcedBytes({ bytes }: WavHeader): number {
  return new DataView(bytes.buffer).getUint32(bytes.length - 4, true);
}
