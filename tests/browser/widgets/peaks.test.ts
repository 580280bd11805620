import { describe, expect, it, mock, onTestFinished, spyOn } from 'bun:test';
import { outline, peaksOf } from '../../../src/demo/studio/peaks.ts';
import type { Track } from '../../../src/demo/studio/playback.ts';
import { createTrackPeaks } from '../../../src/demo/studio/track-peaks.ts';

const TRACK: Track = {
  id: 'c1',
  title: 'Rain',
  seconds: 30,
  url: 'https://gateway.test/c1/content',
  crossOrigin: 'use-credentials',
};

/** A browser that decodes each byte as a sample of so many hundredths, and does not know what begins with 0. */
function decodeBytes(): number[] {
  const rates: number[] = [];
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
  Object.defineProperty(globalThis, 'OfflineAudioContext', { configurable: true, value: Decoder });
  onTestFinished(() => void Reflect.deleteProperty(globalThis, 'OfflineAudioContext'));
  return rates;
}

/** A network on which every file is there and has these bytes, unless there is another answer. */
function serve(answer: () => Response = () => new Response(new Uint8Array([50, 100]))) {
  const asked = mock(async (_url: unknown, _init?: unknown) => answer());
  const spy = spyOn(globalThis, 'fetch').mockImplementation(Object.assign(asked, { preconnect() {} }));
  onTestFinished(() => spy.mockRestore());
  return asked;
}

describe('the outline of a track', () => {
  const rounded = (samples: number[], count: number) =>
    outline(Float32Array.from(samples), count).map((peak) => Number(peak.toFixed(3)));

  it('is the loudest sample of each part, whatever its sign, as a share of the loudest of all', () => {
    expect(rounded([0.1, -0.4, 0.2, 0.1, 0.8, -0.6], 3)).toEqual([0.5, 0.25, 1]);
  });

  it('is the same for a quiet track as for a loud one', () => {
    expect(rounded([0.001, -0.002], 2)).toEqual(rounded([0.5, -1], 2));
  });

  it('leaves out no sample where the parts are not equal', () => {
    for (let loud = 0; loud < 10; loud++) {
      const samples = Array.from({ length: 10 }, (_, index) => (index === loud ? 1 : 0));
      expect(rounded(samples, 3)).toContain(1);
    }
  });

  it('is flat for silence, and for nothing at all', () => {
    expect(rounded([0, 0, 0], 2)).toEqual([0, 0]);
    expect(rounded([], 3)).toEqual([0, 0, 0]);
  });

  it('has as many parts as asked for, also with fewer samples', () => {
    expect(rounded([0.5, 1], 4)).toEqual([0.5, 0.5, 1, 1]);
  });

  it('is made of what the browser decodes, at a rate that is enough for it', async () => {
    const rates = decodeBytes();
    const peaks = await peaksOf(new Uint8Array([50, 100]).buffer);
    expect(peaks).toHaveLength(600);
    expect([peaks?.[0], peaks?.[599]]).toEqual([0.5, 1]);
    expect(rates).toEqual([8_000]);
  });

  it('is unknown where the browser cannot decode it', async () => {
    decodeBytes();
    expect(await peaksOf(new Uint8Array([0, 100]).buffer)).toBeUndefined();
  });
});

describe('the outlines that a tab knows', () => {
  it('are kept of what has arrived, and not fetched again', async () => {
    decodeBytes();
    const asked = serve();
    const peaks = createTrackPeaks();
    const kept = await peaks.keep(TRACK, new Blob([new Uint8Array([100])]));
    expect(kept?.[0]).toBe(1);
    expect(await peaks.of(TRACK)).toBe(kept);
    expect(asked).not.toHaveBeenCalled();
  });

  it.each([
    ['use-credentials', 'include'],
    ['anonymous', 'omit'],
  ] as const)('are fetched once, %s as the player plays', async (crossOrigin, credentials) => {
    decodeBytes();
    const asked = serve();
    const peaks = createTrackPeaks();
    const first = await peaks.of({ ...TRACK, crossOrigin });
    expect(first?.[0]).toBe(0.5);
    expect(await peaks.of({ ...TRACK, crossOrigin })).toBe(first);
    expect(asked.mock.calls).toEqual([[TRACK.url, { credentials }]]);
  });

  it('are not fetched for a track of more than three minutes, but kept if it has arrived here', async () => {
    decodeBytes();
    const asked = serve();
    const peaks = createTrackPeaks();
    const long = { ...TRACK, seconds: 180.5 };
    expect(await peaks.of(long)).toBeUndefined();
    expect(asked).not.toHaveBeenCalled();
    await peaks.keep(long, new Blob([new Uint8Array([100])]));
    expect(await peaks.of(long)).toBeDefined();
    await peaks.of({ ...TRACK, id: 'c2', seconds: 180 });
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it('are asked for again after a failure', async () => {
    decodeBytes();
    const answers = [() => new Response(new Uint8Array([50]), { status: 502 }), () => Response.error()];
    serve(() => answers.shift()?.() ?? new Response(new Uint8Array([50])));
    const peaks = createTrackPeaks();
    expect(await peaks.of(TRACK)).toBeUndefined();
    expect(await peaks.of(TRACK)).toBeUndefined();
    expect(await peaks.of(TRACK)).toBeDefined();
  });

  it('may be missing: a network that fails breaks nothing', async () => {
    serve(() => {
      throw new TypeError('no network');
    });
    expect(await createTrackPeaks().of(TRACK)).toBeUndefined();
  });
});
