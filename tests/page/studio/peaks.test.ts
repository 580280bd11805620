import { afterAll, beforeAll, describe, expect, it, mock, onTestFinished, spyOn } from 'bun:test';
import { outline, type Peaks, peaksOf } from '../../../src/demo/studio/peaks.ts';
import { openPeaksStore } from '../../../src/demo/studio/peaks-store.ts';
import type { Track } from '../../../src/demo/studio/playback.ts';
import { createTrackPeaks } from '../../../src/demo/studio/track-peaks.ts';

const URL = 'https://gateway.test/c1/content';
const TRACK: Track = { id: 'c1', title: 'Rain', seconds: 30, url: URL, crossOrigin: 'use-credentials' };

const LOUD = new Blob([new Uint8Array([100])]);
const rates: number[] = [];

/** Decodes each byte as hundredths of a sample, and nothing that begins with 0. */
class Decoder {
  constructor(_channels: number, _length: number, rate: number) {
    rates.push(rate);
  }
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

/** The outlines of a tab whose network gives each file these bytes, unless there is another response. */
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
  const rounded = (samples: readonly number[], count: number) =>
    outline(Float32Array.from(samples), count).map((peak) => Number(peak.toFixed(3)));

  it('is the loudest of each part, as a share of the loudest', () => {
    expect(rounded([0.1, -0.4, 0.2, 0.1, 0.8, -0.6], 3)).toEqual([0.5, 0.25, 1]);
    expect(rounded([0.001, -0.002], 2)).toEqual([0.5, 1]);
    expect(rounded([0, 0, 0], 2)).toEqual([0, 0]);
    expect(rounded([], 3)).toEqual([0, 0, 0]);
    expect(rounded([0.5, 1], 4)).toEqual([0.5, 0.5, 1, 1]);
  });

  it('is made of what the browser decodes at a low rate, and unknown where it cannot', async () => {
    const peaks = await peaksOf(new Uint8Array([50, 100]).buffer);
    expect([peaks?.length, peaks?.[0], peaks?.[599]]).toEqual([600, 0.5, 1]);
    expect(rates).toEqual([8_000]);
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
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it('are not kept where the browser allows no database', async () => {
    const open = () => {
      throw new DOMException('not allowed', 'SecurityError');
    };
    const store = openPeaksStore({ open, cmp: () => 0, databases: async () => [], deleteDatabase: open });
    await store.write('c1', [1]);
    expect(await store.read('c1')).toBeUndefined();
  });

  it('are not fetched for a track of more than three minutes, but kept if it has arrived', async () => {
    const { asked, peaks } = openPeaks();
    const long = { ...TRACK, seconds: 180.5 };
    expect(await peaks.of(long)).toBeUndefined();
    const kept = await peaks.keep(long, LOUD);
    expect(kept?.[0]).toBe(1);
    expect(await peaks.of(long)).toBe(kept);
    expect(asked).not.toHaveBeenCalled();
    await peaks.of({ ...TRACK, id: 'c2', seconds: 180 });
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it('are fetched again after a failure of any kind', async () => {
    const refused = new Response(new Uint8Array([50]), { status: 502 });
    const responses = [refused, Response.error(), undefined, new Response(new Uint8Array([50]))];
    const { peaks } = openPeaks(() => {
      const response = responses.shift();
      if (!response) throw new TypeError('no network');
      return response;
    });
    for (let failure = 0; failure < 3; failure++) expect(await peaks.of(TRACK)).toBeUndefined();
    expect(await peaks.of(TRACK)).toBeDefined();
  });
});
