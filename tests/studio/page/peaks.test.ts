import { describe, expect, it } from 'bun:test';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { cutAudio } from '../../../src/demo/studio/audio-cut.ts';
import { AudioParts } from '../../../src/demo/studio/audio-parts.ts';
import { outline } from '../../../src/demo/studio/peaks.ts';

it('the outline of a track is the loudest of each part, as a share of the loudest of all', () => {
  const peaks = (samples: number[], count: number) => outline(Float32Array.from(samples), count);
  expect(peaks([0.125, -0.5, 0.25, 0.125, 1, -0.75], 3)).toEqual([0.5, 0.25, 1]);
  expect(peaks([0.25, 0.5], 4)).toEqual([0.5, 0.5, 1, 1]);
  expect([peaks([0, 0], 1), peaks([], 2)]).toEqual([[0], [0, 0]]);
});

const lengthMs = 60_000;
const WAV = renderWav(composeTrack({ model: 'm', prompt: 'Rain', lengthMs }), 0, wavSize(lengthMs));

describe('the parts of audio that arrives', () => {
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
      const said = [view.getUint32(4, true), view.getUint32(40, true)];
      expect([...said, bytes]).toEqual([total - 8, bytes, total - 44]);
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

describe('arriving audio from a later time on', () => {
  const RATE = 48_000;
  const join = (pieces: readonly Uint8Array[] = []) => Buffer.concat(pieces);
  /** Half a minute of the file, in pieces; the header does not end with one of them. */
  const PIECES = [WAV.subarray(0, 30), WAV.subarray(30, 100_001), WAV.subarray(100_001, 44 + 30 * RATE)];
  const cut = (seconds: number, pieces = PIECES, contentType = 'audio/wav', bytesPerSecond?: number) =>
    cutAudio({ pieces, contentType, bytesPerSecond }, seconds);

  it.each([
    [0, 0],
    [1, 1],
    [2.000_03, 2],
    [29.5, 29.5],
    [45, 30],
  ])(
    'of a WAV begins for %d at %d with the samples from there, and announces those that are left',
    (seconds, from) => {
      const found = cut(seconds);
      const file = join(found?.pieces);
      const at = Math.round(from * RATE);
      expect(found?.from).toBeCloseTo(from, 6);
      expect([file.readUInt32LE(4), file.readUInt32LE(40)]).toEqual([60 * RATE - at + 36, 60 * RATE - at]);
      expect(file.subarray(44).equals(WAV.subarray(44 + at, 44 + 30 * RATE))).toBe(true);
    },
  );

  it.each([0, 0xffff_ffff])('of a WAV that announces %d bytes leaves that as it is', (announced) => {
    const begun = WAV.slice(0, 44 + RATE);
    new DataView(begun.buffer).setUint32(40, announced, true);
    expect(join(cut(0.5, [begun])?.pieces).readUInt32LE(40)).toBe(announced);
  });

  it('in frames begins as its rate says, and is none while that is not known, or of what cannot be cut', () => {
    expect(cut(10, PIECES, 'audio/mpeg')).toBeUndefined();
    expect(cut(10, PIECES, 'audio/mpeg', 16_000)?.from).toBe(10);
    expect(join(cut(10, PIECES, 'audio/mpeg', 16_000)?.pieces)).toEqual(join(PIECES).subarray(160_000));
    expect(cut(10, PIECES, 'audio/ogg', 16_000)?.from).toBe(10);
    expect(cut(10, [new Uint8Array(9_000)], 'audio/ogg', 16_000)).toBeUndefined();
    expect(cut(0, PIECES, 'audio/ogg')).toEqual({ pieces: PIECES, from: 0 });
  });
});
