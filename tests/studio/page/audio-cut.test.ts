import { describe, expect, it } from 'bun:test';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { cutAudio } from '../../../src/demo/studio/audio-cut.ts';

const lengthMs = 60_000;
const WAV = renderWav(composeTrack({ model: 'm', prompt: 'Rain', lengthMs }), 0, wavSize(lengthMs));

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
