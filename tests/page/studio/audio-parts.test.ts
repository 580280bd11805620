import { describe, expect, it } from 'bun:test';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { type AudioPart, AudioParts } from '../../../src/demo/studio/audio-parts.ts';

const LENGTH_MS = 60_000;
const HEADER_BYTES = 44;
const MOST_BYTES = 2_097_152;
const WAV = renderWav(
  composeTrack({ model: 'm', prompt: 'Rain', lengthMs: LENGTH_MS }),
  0,
  wavSize(LENGTH_MS),
);

/** Adds the file in pieces of this size, and takes a part after each. */
function cut(file: Uint8Array<ArrayBuffer>, contentType: string, pieceBytes: number): readonly AudioPart[] {
  const parts = new AudioParts(contentType);
  const taken: AudioPart[] = [];
  for (let at = 0; at < file.length; at += pieceBytes) {
    parts.add(file.subarray(at, at + pieceBytes));
    const part = parts.take();
    if (part) taken.push(part);
  }
  return taken;
}

describe('the parts of audio that arrives', () => {
  it.each([10_001, 100_003, WAV.length])(
    'are WAV files with all samples in order, from pieces of %d',
    (size) => {
      const parts = cut(WAV, 'audio/wav', size);
      const samples = parts.map(({ file, bytes }) => {
        const view = new DataView(file);
        expect([file.byteLength - HEADER_BYTES, view.getUint32(40, true)]).toEqual([bytes, bytes]);
        expect([bytes % 2, view.getUint32(4, true)]).toEqual([0, file.byteLength - 8]);
        expect(new Uint8Array(file, 0, 4)).toEqual(WAV.subarray(0, 4));
        return new Uint8Array(file, HEADER_BYTES);
      });
      const all = Buffer.concat(samples);
      expect(all.equals(WAV.subarray(HEADER_BYTES, HEADER_BYTES + all.length))).toBe(true);
      expect(all.length).toBeGreaterThan(WAV.length - HEADER_BYTES - 2_000_000);
    },
  );

  it('have a limit, whatever has arrived', () => {
    const parts = new AudioParts('audio/wav');
    parts.add(WAV);
    const sizes = [parts.take()?.bytes, parts.take()?.bytes, parts.take()];
    expect(sizes).toEqual([MOST_BYTES - HEADER_BYTES, WAV.length - MOST_BYTES, undefined]);
  });

  it('are frames as they come for MP3, and nothing for what cannot be cut', () => {
    const frames = new Uint8Array(70_000).fill(7);
    const [first, ...more] = cut(frames, 'audio/mpeg', 40_000);
    expect([first?.file.byteLength, first?.bytes, more.length]).toEqual([40_000, 40_000, 0]);
    expect(cut(frames, 'audio/ogg', 40_000)).toEqual([]);
  });
});
