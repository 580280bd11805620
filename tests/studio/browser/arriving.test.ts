import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { isHeard, waveformIsDrawn } from './media.ts';
import { openStudio, type Studio } from './page.ts';

/** Collects what the live region says from now on. */
async function listen(studio: Studio): Promise<() => Promise<readonly string[]>> {
  const liveRegion = studio.region(english.underWay).getByRole('status');
  const heard = await liveRegion.evaluateHandle((element) => {
    const texts: string[] = [];
    const observer = new MutationObserver(() => texts.push(element.textContent.trim()));
    observer.observe(element, { childList: true, characterData: true, subtree: true });
    return texts;
  });
  return () => heard.jsonValue();
}

describeInChromium('a track that arrives', (visit) => {
  it('is heard and drawn as far as it is here, is announced briefly, and plays on when it is whole', async () => {
    await using studio = await openStudio(visit);
    const { page, slider } = studio;
    const live = page.getByText(english.live, { exact: true });
    const said = await listen(studio);
    const audio = await studio.orderHeld({ seconds: 12 });
    await isHeard(studio);
    await live.waitFor();
    await studio.button(english.pause).waitFor();
    await studio.shows('50%');
    expect(await waveformIsDrawn(studio, 0.4)).toBeLessThan(0.52);
    const sources = await studio.loads();
    await studio.playsAtRate(4);
    await studio.shows(english.stalled);

    audio.release();
    await studio.hides(english.stalled);
    await studio.says(english.complete);
    await live.waitFor({ state: 'hidden' });
    await studio.hides('50%');
    expect(await waveformIsDrawn(studio, 0.9)).toBeLessThanOrEqual(1);
    expect(await slider.getAttribute('aria-valuetext')).toMatch(/^0:\d\d \/ 0:12$/);
    await studio.playsToEnd();
    expect(await sources()).toEqual([]);
    expect(await said()).toEqual([english.asking, english.arriving, english.complete]);
    expect(studio.upstream.counts().generations).toBe(1);
  });

  it('waits when its stream fails or there is no service worker, and plays as the file when it is whole', async () => {
    await using studio = await openStudio(visit);
    const { page, visitor } = studio;
    const playsWhenWhole = async (audio: { release(): void }) => {
      await studio.shows(english.afterArrival);
      audio.release();
      await studio.says(english.complete);
      await page.waitForFunction(() => document.querySelector('audio')?.src.endsWith('/content'));
      await studio.playsToEnd();
      await studio.hides(english.afterArrival);
    };
    visitor.tolerateProblem(/ERR_|\/live\//);
    const broken = await studio.orderHeld();
    await studio.playsBeyond(0.1);
    // As a worker does that the browser stops.
    await studio.audio.evaluate((element: HTMLAudioElement) => {
      const id = new URL(element.src).pathname.slice('/live/'.length);
      navigator.serviceWorker.controller?.postMessage({ id, kind: 'break' });
    });
    await playsWhenWhole(broken);

    await visitor.context.addInitScript('Object.defineProperty(navigator, "serviceWorker", {})');
    await page.reload();
    await page.getByRole('combobox', { name: english.model }).filter({ hasText: 'Sandbox' }).waitFor();
    await playsWhenWhole(await studio.orderHeld());
  });

  it('leaves the player to the track that was opened before or meanwhile, and is heard from its row', async () => {
    await using studio = await openStudio(visit);
    const { player } = studio;
    const rain = await studio.orderHeld({ prompt: 'Rain' });
    await studio.playsBeyond(0.1);
    const snow = await studio.orderHeld({ prompt: 'Snow' });
    await studio.says(`Snow: ${english.arriving}`);
    expect(await studio.lines.count()).toBe(2);
    expect(await player.getByText('Rain').isVisible()).toBe(true);

    await studio.press(english.play, studio.tracks.filter({ hasText: 'Snow' }));
    await player.getByText('Snow').waitFor();
    await studio.playsBeyond(0.1);
    const sources = await studio.loads();
    rain.release();
    await studio.says(`Rain: ${english.complete}`);
    await studio.orderHeld({ prompt: 'Hail' });
    await studio.says(`Hail: ${english.arriving}`);
    // Only one of them is listened to.
    await studio.button(english.stopListening, studio.lines.filter({ hasText: 'Snow' })).waitFor();
    await studio.press(english.stopReceiving, studio.lines.filter({ hasText: 'Hail' }));
    await studio.says(`Hail: ${english.cancelled}`);
    expect(await player.getByText('Snow').isVisible()).toBe(true);
    snow.release();
    await studio.says(`Snow: ${english.complete}`);
    expect(await sources()).toEqual([]);
    await studio.playsAtRate(16);
    await player.getByText('Rain').waitFor();
  });
});
