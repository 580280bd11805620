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

/** Waits until the waveform has bars that are higher than those of silence, and gives how far they reach. */
async function waveformIsDrawn({ page }: Studio, least = 0): Promise<number> {
  const reach = await page.waitForFunction((least) => {
    const host = document.querySelector('[data-part=waveform] > div');
    const canvas = host?.shadowRoot?.querySelector('canvas');
    if (!canvas || canvas.width === 0) return undefined;
    const copy = new OffscreenCanvas(canvas.width, Math.ceil(canvas.height / 4));
    const context = copy.getContext('2d', { willReadFrequently: true });
    context?.drawImage(canvas, 0, 0);
    const { data = [] } = context?.getImageData(0, 0, copy.width, copy.height) ?? {};
    const columns = Array.from(
      data.keys().filter((index) => data[index]),
      (index) => (index / 4) % copy.width,
    );
    const share = columns.reduce((last, column) => Math.max(last, column), 0) / copy.width;
    return share > least ? share : undefined;
  }, least);
  return (await reach.jsonValue()) ?? 0;
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

describeInChromium('the waveform of a track that arrives', (visit) => {
  it('grows with it, as far as the ordered length is here, and says how much that is', async () => {
    await using studio = await openStudio(visit);
    const audio = await studio.orderHeld({ seconds: 12 });
    await studio.shows('50%');
    const reach = await waveformIsDrawn(studio, 0.4);
    expect(reach).toBeLessThan(0.52);
    audio.release();
    await studio.says(english.complete);
    expect(await waveformIsDrawn(studio, 0.9)).toBeLessThanOrEqual(1);
    await studio.hides('50%');
  });
});
