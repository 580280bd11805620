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

/** The outlines of a tab whose network gives each file two bytes, unless there is another response. */
function openPeaks(respond: () => Response = () => new Response(new Uint8Array([50, 100]))) {
  const asked = mock(async (_url: unknown, _init?: unknown) => respond());
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
    [
      [0.1, -0.4, 0.2, 0.1, 0.8, -0.6],
      [0.5, 0.25, 1],
    ],
    [
      [0.001, -0.002],
      [0.5, 1],
    ],
    [
      [0, 0, 0],
      [0, 0],
    ],
    [[], [0, 0, 0]],
    [
      [0.5, 1],
      [0.5, 0.5, 1, 1],
    ],
  ])('of %j is the loudest of each part, as a share of the loudest: %j', (samples, expected) => {
    const peaks = outline(Float32Array.from(samples), expected.length);
    expect(peaks.map((peak) => Number(peak.toFixed(3)))).toEqual(expected);
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
    const bytes = new Uint8Array([50]);
    const responses = [
      new Response(bytes, { status: 502 }),
      Response.error(),
      undefined,
      new Response(bytes),
    ];
    const { peaks } = openPeaks(() => {
      const response = responses.shift();
      if (!response) throw new TypeError('no network');
      return response;
    });
    for (let failure = 0; failure < 3; failure++) expect(await peaks.of(TRACK)).toBeUndefined();
    expect(await peaks.of(TRACK)).toBeDefined();
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
      const samples = cut(WAV, 'audio/wav', size).map(({ file, bytes }) => {
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
