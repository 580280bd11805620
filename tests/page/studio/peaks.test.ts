import { afterAll, beforeAll, describe, expect, it, mock, onTestFinished, spyOn } from 'bun:test';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { type AudioPart, AudioParts } from '../../../src/demo/studio/audio-parts.ts';
import { outline, type Peaks, peaksOf } from '../../../src/demo/studio/peaks.ts';
import { openPeaksStore } from '../../../src/demo/studio/peaks-store.ts';
import type { Track } from '../../../src/demo/studio/playback.ts';
import { createTrackPeaks } from '../../../src/demo/studio/track-peaks.ts';

const URL = 'https://gateway.test/c1/content';
const TRACK: Track = { id: 'c1', title: 'Rain', seconds: 180, url: URL, crossOrigin: 'use-credentials' };

/** Decodes each byte as hundredths of a sample, and nothing that begins with 0. */
class Decoder {
  async decodeAudioData(audio: ArrayBuffer) {
    const bytes = new Uint8Array(audio);
    if (bytes[0] === 0) throw new Error('no audio');
    return { getChannelData: () => Float32Array.from(bytes, (byte) => byte / 100) };
  }
}
beforeAll(() => {
  Object.defineProperty(globalThis, 'OfflineAudioContext', { configurable: true, value: Decoder });
});
afterAll(() => void Reflect.deleteProperty(globalThis, 'OfflineAudioContext'));

/** The outlines of a tab whose network gives each file two bytes. */
function openPeaks() {
  const asked = mock(async (_url: unknown, _init?: unknown) => new Response(new Uint8Array([50, 100])));
  const spy = spyOn(globalThis, 'fetch').mockImplementation(Object.assign(asked, { preconnect() {} }));
  onTestFinished(() => spy.mockRestore());
  const known = new Map<string, Peaks>();
  const store = {
    read: async (id: string) => known.get(id),
    write: async (id: string, outline: Peaks) => void known.set(id, outline),
    clear: async () => known.clear(),
  };
  const untilLoaded = mock(async () => true);
  return { asked, untilLoaded, peaks: createTrackPeaks({ store, untilLoaded }) };
}

describe('the outline of a track', () => {
  it.each([
    ['0.1 -0.4 0.2 0.1 0.8 -0.6', '0.5 0.25 1'],
    ['0.001 -0.002', '0.5 1'],
    ['0 0 0', '0 0'],
    ['', '0 0 0'],
    ['0.5 1', '0.5 0.5 1 1'],
  ])('of %s is the loudest of each part, as a share of the loudest: %s', (samples, expected) => {
    const bars = expected.split(' ');
    const peaks = outline(Float32Array.from(samples.split(' ').filter(Boolean), Number), bars.length);
    expect(peaks.map((peak) => Number(peak.toFixed(3)))).toEqual(bars.map(Number));
  });

  it('is made of what the browser decodes, and unknown where it cannot', async () => {
    const peaks = await peaksOf(new Uint8Array([50, 100]).buffer);
    expect([peaks?.length, peaks?.[0], peaks?.[599]]).toEqual([600, 0.5, 1]);
    expect(await peaksOf(new Uint8Array([0, 100]).buffer)).toBeUndefined();
  });
});

describe('the outlines that a tab knows', () => {
  it.each([
    ['use-credentials', 'include'],
    ['anonymous', 'omit'],
  ] as const)('are fetched once, %s as the player plays', async (crossOrigin, credentials) => {
    const { asked, peaks } = openPeaks();
    const first = await peaks.of({ ...TRACK, crossOrigin });
    expect(first?.[0]).toBe(0.5);
    expect(await peaks.of({ ...TRACK, crossOrigin })).toBe(first);
    expect(asked.mock.calls).toEqual([[TRACK.url, { credentials, priority: 'low' }]]);
    peaks.forget();
    await peaks.of({ ...TRACK, crossOrigin });
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it('are fetched only when the player has what it needs, and not for a track that it has left', async () => {
    const { asked, untilLoaded, peaks } = openPeaks();
    const loading = Promise.withResolvers<boolean>();
    untilLoaded.mockReturnValueOnce(loading.promise);
    const first = peaks.of(TRACK);
    untilLoaded.mockResolvedValueOnce(false);
    expect(await peaks.of({ ...TRACK, id: 'c2' })).toBeUndefined();
    expect(asked).not.toHaveBeenCalled();
    loading.resolve(true);
    expect(await first).toBeDefined();
  });

  it('are not fetched for a track of more than three minutes, but kept if it has arrived', async () => {
    const { asked, peaks } = openPeaks();
    const long = { ...TRACK, seconds: 180.5 };
    expect(await peaks.of(long)).toBeUndefined();
    const kept = await peaks.keep(long, new Blob([new Uint8Array([100])]));
    expect(kept?.[0]).toBe(1);
    expect(await peaks.of(long)).toBe(kept);
    expect(asked).not.toHaveBeenCalled();
  });

  it('are fetched again after a failure of any kind', async () => {
    const { asked, peaks } = openPeaks();
    asked.mockResolvedValueOnce(new Response(new Uint8Array([50]), { status: 502 }));
    asked.mockRejectedValueOnce(new TypeError('no network'));
    const found = [await peaks.of(TRACK), await peaks.of(TRACK), await peaks.of(TRACK)];
    expect(found.map(Boolean)).toEqual([false, false, true]);
  });

  it('are not kept where the browser allows no database', async () => {
    const open = () => {
      throw new DOMException('not allowed', 'SecurityError');
    };
    const store = openPeaksStore({ open, cmp: () => 0, databases: async () => [], deleteDatabase: open });
    await store.write('c1', [1]);
    expect(await store.read('c1')).toBeUndefined();
  });
});

const LENGTH_MS = 60_000;
const HEADER_BYTES = 44;
const MOST_BYTES = 2_097_152;
const WAV = renderWav(
  composeTrack({ model: 'm', prompt: 'Rain', lengthMs: LENGTH_MS }),
  0,
  wavSize(LENGTH_MS),
);

/** Adds the file in pieces of this size, and takes a part after each, and what is left at the end. */
function cut(file: Uint8Array<ArrayBuffer>, contentType: string, pieceBytes: number): readonly AudioPart[] {
  const parts = new AudioParts(contentType);
  const taken: (AudioPart | undefined)[] = [];
  for (let at = 0; at < file.length; at += pieceBytes) {
    parts.add(file.subarray(at, at + pieceBytes));
    taken.push(parts.take());
  }
  return [...taken, parts.take()].filter((part) => part !== undefined);
}

describe('the parts of audio that arrives', () => {
  it.each([10_001, 100_003, WAV.length])(
    'are WAV files with all samples in order, from pieces of %d',
    (size) => {
      const samples = cut(WAV, 'audio/wav', size).map(({ file, bytes }) => {
        const view = new DataView(file);
        expect([file.byteLength - HEADER_BYTES, view.getUint32(40, true)]).toEqual([bytes, bytes]);
        expect([bytes % 2, view.getUint32(4, true)]).toEqual([0, file.byteLength - 8]);
        expect(new Uint8Array(file, 0, 4)).toEqual(WAV.subarray(0, 4));
        return new Uint8Array(file, HEADER_BYTES);
      });
      const all = Buffer.concat(samples);
      expect(all.equals(WAV.subarray(HEADER_BYTES, HEADER_BYTES + all.length))).toBe(true);
      // What is left is too little for a part.
      expect(all.length).toBeGreaterThan(WAV.length - HEADER_BYTES - 32_768);
    },
  );

  it('have a limit, are frames as they come for MP3, and are none of what cannot be cut', () => {
    const sizes = (...given: Parameters<typeof cut>) => cut(...given).map(({ bytes }) => bytes);
    expect(sizes(WAV, 'audio/wav', WAV.length)).toEqual([MOST_BYTES - HEADER_BYTES, WAV.length - MOST_BYTES]);
    expect(sizes(new Uint8Array(70_000), 'audio/mpeg', 40_000)).toEqual([40_000]);
    expect(sizes(new Uint8Array(70_000), 'audio/ogg', 40_000)).toEqual([]);
  });
});
