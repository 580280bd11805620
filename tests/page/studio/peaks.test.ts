import { describe, expect, it } from 'bun:test';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { AudioParts } from '../../../src/demo/studio/audio-parts.ts';
import { outline } from '../../../src/demo/studio/peaks.ts';

describe('the outline of a track', () => {
  it('is the loudest of each part, as a share of the loudest of all', () => {
    const peaks = (samples: number[], count: number) => outline(Float32Array.from(samples), count);
    expect(peaks([0.125, -0.5, 0.25, 0.125, 1, -0.75], 3)).toEqual([0.5, 0.25, 1]);
    expect(peaks([0.25, 0.5], 4)).toEqual([0.5, 0.5, 1, 1]);
    expect([peaks([0, 0], 1), peaks([], 2)]).toEqual([[0], [0, 0]]);
  });
});

describe('the parts of audio that arrives', () => {
  const lengthMs = 60_000;
  const WAV = renderWav(composeTrack({ model: 'm', prompt: 'Rain', lengthMs }), 0, wavSize(lengthMs));

  /** Adds the file in pieces of this size, and takes a part after each, and what is left at the end. */
  function cut(file: Uint8Array<ArrayBuffer>, contentType: string, pieceBytes: number) {
    const parts = new AudioParts(contentType);
    const taken = [];
    for (let at = 0; at < file.length; at += pieceBytes) {
      parts.add(file.subarray(at, at + pieceBytes));
      taken.push(parts.take());
    }
    return [...taken, parts.take()].filter((part) => part !== undefined);
  }

  it.each([10_001, WAV.length])('are WAV files with all samples in order, from pieces of %d', (size) => {
    const samples = cut(WAV, 'audio/wav', size).map(({ file, bytes }) => {
      const [view, total] = [new DataView(file), file.byteLength];
      expect([view.getUint32(4, true), view.getUint32(40, true), bytes]).toEqual([
        total - 8,
        bytes,
        total - 44,
      ]);
      expect([bytes % 2, new Uint8Array(file, 0, 4)]).toEqual([0, WAV.slice(0, 4)]);
      return new Uint8Array(file, 44);
    });
    const all = Buffer.concat(samples);
    expect(all.equals(WAV.subarray(44, 44 + all.length))).toBe(true);
    // What is left is too little for a part.
    expect(all.length).toBeGreaterThan(WAV.length - 44 - 32_768);
  });

  it('have a limit, are frames as they come for MP3, and are none of what cannot be cut', () => {
    const sizes = (...given: Parameters<typeof cut>) => cut(...given).map(({ bytes }) => bytes);
    expect(sizes(WAV, 'audio/wav', WAV.length)).toEqual([2_097_152 - 44, WAV.length - 2_097_152]);
    expect(sizes(new Uint8Array(70_000), 'audio/mpeg', 40_000)).toEqual([40_000]);
    expect(sizes(new Uint8Array(70_000), 'audio/ogg', 40_000)).toEqual([]);
  });
});
