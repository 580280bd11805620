import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, type Studio } from './page.ts';

interface Fetched {
  readonly priority: string | undefined;
  /** Whether the player had loaded the whole track. */
  readonly isAfterPlayback: boolean;
}

/** What the page fetches for a waveform from now on. */
function watchFetches({ page }: Studio) {
  return page.evaluateHandle(() => {
    const found: Fetched[] = [];
    const original = globalThis.fetch;
    globalThis.fetch = Object.assign((input: RequestInfo | URL, init?: RequestInit) => {
      if (String(input).endsWith('/content')) {
        const audio = document.querySelector('audio');
        const end = audio && audio.buffered.length > 0 ? audio.buffered.end(0) : 0;
        const isAfterPlayback = end > 0 && end >= (audio?.duration ?? 0) - 0.3;
        found.push({ priority: init?.priority, isAfterPlayback });
      }
      return original(input, init);
    }, original);
    return found;
  });
}

/** Waits until the waveform has bars that are higher than those of silence. */
function waveformIsDrawn({ page }: Studio): Promise<unknown> {
  return page.waitForFunction(() => {
    const host = document.querySelector('[data-part=waveform] > div');
    const canvas = host?.shadowRoot?.querySelector('canvas');
    if (!canvas || canvas.width === 0) return false;
    const copy = new OffscreenCanvas(canvas.width, Math.ceil(canvas.height / 4));
    const context = copy.getContext('2d', { willReadFrequently: true });
    context?.drawImage(canvas, 0, 0);
    const { data = [] } = context?.getImageData(0, 0, copy.width, copy.height) ?? {};
    return data.some((value) => value > 0);
  });
}

/** Counts or removes the outlines that the browser keeps. */
function outlines({ page }: Studio, action: 'clear' | 'count'): Promise<unknown> {
  return page.evaluate(
    (action) =>
      new Promise((resolve) => {
        const opening = indexedDB.open('studio');
        opening.addEventListener('success', () => {
          const request = opening.result.transaction('peaks', 'readwrite').objectStore('peaks')[action]();
          request.addEventListener('success', () => resolve(request.result));
        });
      }),
    action,
  );
}

describeInChromium('the waveform of a track in the library', (visit) => {
  it('is fetched when the player has loaded the track, and then not again in this browser', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ seconds: 20 });
    await waveformIsDrawn(studio);
    expect(await outlines(studio, 'clear')).toBeUndefined();
    await studio.page.reload();
    const fetched = await watchFetches(studio);
    await studio.press(english.play, studio.tracks.first());
    await waveformIsDrawn(studio);
    expect(await fetched.jsonValue()).toEqual([{ priority: 'low', isAfterPlayback: true }]);

    await studio.page.reload();
    const again = await watchFetches(studio);
    await studio.press(english.play, studio.tracks.first());
    await waveformIsDrawn(studio);
    expect(await again.jsonValue()).toEqual([]);

    await studio.press(english.signOut);
    await studio.button(english.signIn).waitFor();
    expect(await outlines(studio, 'count')).toBe(0);
  });
});
