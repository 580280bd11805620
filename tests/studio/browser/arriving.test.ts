import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { ORDER, undisturbedHash, watchPieces } from '../pieces.ts';
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
  it('is heard and drawn as far as it is here, is announced in a few words, and can be searched when it is whole', async () => {
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

  it('can be moved in as far as it is here, also when it is played from its row', async () => {
    await using studio = await openStudio(visit);
    const { page, gate, slider } = studio;
    const at = async () => Number(await slider.inputValue());
    const playsOn = async () => {
      const before = await at();
      await page.waitForFunction(
        (before) => Number(document.querySelector<HTMLInputElement>('[data-part=position]')?.value) > before,
        before,
      );
    };
    const audio = gate.holdAudio(16 * 48_000);
    for (const prompt of ['Rain', 'Snow']) {
      await studio.order({ prompt, seconds: 30 });
      await studio.lines.filter({ hasText: prompt }).getByText('53%').waitFor();
      if (prompt === 'Snow') await studio.press(english.play, studio.tracks.filter({ hasText: 'Snow' }));
      await playsOn();
      await slider.press('End');
      expect(await at()).toBe(16);
      await slider.press('ArrowLeft');
      await slider.press('ArrowLeft');
      // It may have played on between the two.
      expect(await at()).toBeWithin(6, 10);
      await playsOn();
    }
    await studio.press(english.pause);
    for (const [key, seconds] of [
      ['Home', 0],
      ['ArrowRight', 5],
    ] as const) {
      await slider.press(key);
      expect(await at()).toBe(seconds);
    }
    await studio.press(english.listen);
    await playsOn();
    const sources = await studio.loads();
    audio.release();
    await studio.lines.filter({ hasText: 'Snow' }).getByText(english.complete).waitFor();
    await playsOn();
    expect(await sources()).toEqual([]);
    await slider.press('ArrowRight');
    expect(await at()).toBeGreaterThanOrEqual(10);
    expect(await studio.audio.getAttribute('src')).toEndWith('/content');
  });

  it('is whole, and was heard as far as it was here, although the browser was offline and the gateway restarted', async () => {
    await using studio = await openStudio(visit, { isGatewayProcess: true });
    const { page, world, visitor } = studio;
    visitor.expectProblem(/ERR_/);
    const sources = await studio.loads();
    await page.evaluate(watchPieces);
    await studio.playsAtRate(4);
    const audio = studio.gate.holdAudio(ORDER.bytes / 2);
    await studio.order(ORDER);
    await page.waitForFunction((bytes) => watched.bytes >= bytes, ORDER.bytes / 2);
    await studio.setOffline(true);
    audio.release();
    await studio.shows(english.reconnecting);
    await studio.says(english.recovering);
    await world.gateway.restart();
    // Chromium plays nothing of the last six seconds before it has more.
    await studio.playsBeyond(ORDER.seconds / 2 - 6);
    await studio.setOffline(false);
    await studio.says(english.complete);
    await studio.hides(english.reconnecting);
    await studio.playsToEnd();
    expect(await page.evaluate(() => watched.hash())).toBe(undisturbedHash());
    expect(await sources()).toEqual([false]);
    await studio.accountShows('4,972');
    expect(studio.upstream.counts().generations).toBe(1);
    expect(await studio.tracks.count()).toBe(1);
  });

  it.each(['its stream fails', 'no service worker serves the page'])(
    'waits when %s, and plays as the file when it is whole',
    async (problem) => {
      await using studio = await openStudio(visit);
      const { page, visitor } = studio;
      const hasStream = problem === 'its stream fails';
      if (!hasStream) {
        await visitor.context.addInitScript('Object.defineProperty(navigator, "serviceWorker", {})');
        await page.reload();
        await page.getByRole('combobox', { name: english.model }).filter({ hasText: 'Sandbox' }).waitFor();
      }
      const audio = await studio.orderHeld();
      if (hasStream) {
        visitor.tolerateProblem(/ERR_|\/live\//);
        await studio.playsBeyond(0.1);
        // As a worker does that the browser stops.
        await studio.audio.evaluate((element: HTMLAudioElement) => {
          const id = new URL(element.src).pathname.slice('/live/'.length);
          navigator.serviceWorker.controller?.postMessage({ id, kind: 'break' });
        });
      }
      await studio.shows(english.afterArrival);
      audio.release();
      await studio.says(english.complete);
      await page.waitForFunction(() => document.querySelector('audio')?.src.endsWith('/content'));
      await studio.playsToEnd();
      await studio.hides(english.afterArrival);
    },
  );

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
