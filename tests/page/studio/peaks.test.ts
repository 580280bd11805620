import { expect, it, mock, onTestFinished, spyOn } from 'bun:test';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { AudioParts } from '../../../src/demo/studio/audio-parts.ts';
import { outline, type Peaks } from '../../../src/demo/studio/peaks.ts';
import type { Track } from '../../../src/demo/studio/playback.ts';
import { createTrackPeaks } from '../../../src/demo/studio/track-peaks.ts';

const URL = 'https://gateway.test/c1/content';
const TRACK: Track = { id: 'c1', title: 'Rain', seconds: 180, url: URL, crossOrigin: 'use-credentials' };

/** Decodes each byte as hundredths of a sample. */
class Decoder {
  async decodeAudioData(audio: ArrayBuffer) {
    return { getChannelData: () => Float32Array.from(new Uint8Array(audio), (byte) => byte / 100) };
  }
}

it('The outline of a track is the loudest of each part, as a share of the loudest', () => {
  const peaks = (samples: number[], count: number) => outline(Float32Array.from(samples), count);
  expect(peaks([0.125, -0.5, 0.25, 0.125, 1, -0.75], 3)).toEqual([0.5, 0.25, 1]);
  expect([peaks([0.5, 1], 4), peaks([0, 0], 1), peaks([], 2)]).toEqual([[0.5, 0.5, 1, 1], [0], [0, 0]]);
});

it.each([
  ['use-credentials', 'include'],
  ['anonymous', 'omit'],
] as const)(
  'An outline is fetched with %s as the player plays, until that succeeds',
  async (how, credentials) => {
    Object.defineProperty(globalThis, 'OfflineAudioContext', { configurable: true, value: Decoder });
    onTestFinished(() => void Reflect.deleteProperty(globalThis, 'OfflineAudioContext'));
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
    const peaks = createTrackPeaks({ store, untilLoaded });
    const track = { ...TRACK, crossOrigin: how };
    const long = { ...track, id: 'c2', seconds: 180.5 };
    untilLoaded.mockResolvedValueOnce(false);
    // The player has left the first track, and the second one is too long.
    expect([await peaks.of(track), await peaks.of(long)]).toEqual([undefined, undefined]);
    expect(await peaks.keep(long, new Blob([new Uint8Array([100])]))).toHaveLength(600);
    expect([(await peaks.of(long))?.[0], asked.mock.calls.length]).toEqual([1, 0]);
    asked.mockResolvedValueOnce(new Response(new Uint8Array([50]), { status: 502 }));
    asked.mockRejectedValueOnce(new TypeError('no network'));
    const found = [
      await peaks.of(track),
      await peaks.of(track),
      await peaks.of(track),
      await peaks.of(track),
    ];
    expect(found.map((each) => each?.[0])).toEqual([undefined, undefined, 0.5, 0.5]);
    expect(asked.mock.calls).toEqual(Array(3).fill([TRACK.url, { credentials, priority: 'low' }]));
    peaks.forget();
    expect(await peaks.of(long)).toBeUndefined();
  },
);

it('The parts of audio that arrives are WAV files with all samples in order, and none of what cannot be cut', () => {
  const lengthMs = 3_000;
  const wav = renderWav(composeTrack({ model: 'm', prompt: 'Rain', lengthMs }), 0, wavSize(lengthMs));
  const cut = (type: string, file = wav) => {
    const parts = new AudioParts(type);
    const taken: ArrayBuffer[] = [];
    for (let at = 0; at < file.length; at += 10_001) {
      parts.add(file.subarray(at, at + 10_001));
      taken.push(parts.take()?.file ?? new ArrayBuffer());
    }
    return taken.filter(({ byteLength }) => byteLength > 0);
  };
  const samples = cut('audio/wav').map((file) => {
    const view = new DataView(file);
    expect([view.getUint32(4, true), view.getUint32(40, true)]).toEqual([
      file.byteLength - 8,
      file.byteLength - 44,
    ]);
    expect(new Uint8Array(file, 0, 4)).toEqual(wav.subarray(0, 4));
    return new Uint8Array(file, 44);
  });
  const all = Buffer.concat(samples);
  expect(all.equals(wav.subarray(44, 44 + all.length))).toBe(true);
  // What is left is too little for a part.
  expect(all.length).toBeGreaterThan(wav.length - 44 - 32_768);
  expect(Buffer.concat(cut('audio/mpeg').map((file) => new Uint8Array(file)))).toHaveLength(all.length + 44);
  expect(cut('audio/ogg', new Uint8Array(70_000))).toEqual([]);
});
