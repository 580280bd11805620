import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { ORDER, undisturbedHash, watchPieces } from '../pieces.ts';
import { isHeard, waveformIsDrawn } from './media.ts';
import { openStudio, type Studio } from './page.ts';

const CONTENT = /\/v1\/music\/creations\/[^/]+\/content$/;

/** Collects what the live region of the form says from now on. */
async function listen(studio: Studio): Promise<() => Promise<readonly string[]>> {
  const liveRegion = studio.region(english.newTrack).getByRole('status');
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
    expect(await studio.button(english.cancel).isVisible()).toBe(true);
    expect(await slider.isDisabled()).toBe(true);
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
    expect(await slider.isEnabled()).toBe(true);
    expect(await slider.getAttribute('aria-valuetext')).toMatch(/^0:\d\d \/ 0:12$/);
    await studio.playsToEnd();
    expect(await sources()).toEqual([]);
    expect(await said()).toEqual([english.asking, english.arriving, english.complete]);
    expect(studio.upstream.counts().generations).toBe(1);
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
    await studio.accountShows('4,952');
    expect(studio.upstream.counts().generations).toBe(1);
    expect(await studio.tracks.count()).toBe(1);
  });

  it.each(['its stream fails', 'no service worker serves the page'])(
    'waits when %s, and plays as the file when it is whole',
    async (problem) => {
      await using studio = await openStudio(visit);
      const { page, visitor } = studio;
      const fails = problem === 'its stream fails';
      if (!fails) {
        await visitor.context.addInitScript('Object.defineProperty(navigator, "serviceWorker", {})');
        await page.reload();
        await page.getByRole('combobox', { name: english.model }).filter({ hasText: 'Sandbox' }).waitFor();
      }
      const audio = await studio.orderHeld();
      if (fails) {
        visitor.tolerateProblem(/ERR_|\/live\//);
        await studio.playsBeyond(0.5);
        // As a worker does that the browser stops.
        await studio.audio.evaluate((element: HTMLAudioElement) => {
          const id = new URL(element.src).pathname.slice('/live/'.length);
          navigator.serviceWorker.controller?.postMessage({ id, kind: 'break' });
        });
      }
      await studio.shows(english.afterArrival);
      if (!fails) expect(await studio.audio.getAttribute('src')).toBeNull();
      audio.release();
      await studio.says(english.complete);
      await studio.playsBeyond(0.5);
      expect(await studio.audio.getAttribute('src')).toMatch(CONTENT);
      await studio.hides(english.afterArrival);
    },
  );

  it('leaves the player to the track that was opened meanwhile, when it is whole and when it breaks off', async () => {
    await using studio = await openStudio(visit);
    const { page, visitor, world } = studio;
    const snow = studio.tracks.filter({ hasText: 'Snow' });
    await studio.generate({ prompt: 'Snow' });
    const audio = await studio.orderHeld({ prompt: 'Rain' });
    await studio.says(english.arriving);
    await studio.press(english.play, snow);
    await studio.playsToEnd();
    const sources = await studio.loads();
    audio.release();
    await studio.says(english.complete);
    await studio.slider.click();
    await page.waitForFunction(() => {
      const played = document.querySelector('audio');
      return played && !played.seeking && played.readyState > 1;
    });
    expect(await sources()).toEqual([]);

    await studio.orderHeld({ prompt: 'Hail' });
    await studio.says(english.arriving);
    await studio.press(english.play, snow);
    visitor.expectProblem(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    await studio.refuseFiles();
    world.upstreamNetwork.break();
    await studio.says(english.broken);
    expect(await studio.region(english.player).getByText('Snow').isVisible()).toBe(true);
  });

  it('does not take the player from another one that arrives, and is heard from its row', async () => {
    await using studio = await openStudio(visit);
    const player = studio.region(english.player);
    const audio = await studio.orderHeld({ prompt: 'Rain', seconds: 20 });
    await studio.playsBeyond(0.3);
    await studio.order({ prompt: 'Snow', seconds: 20 });
    await studio.says(`Snow: ${english.arriving}`);
    expect(await studio.lines.count()).toBe(2);
    expect(await player.getByText('Rain').isVisible()).toBe(true);
    await studio.playsBeyond(0.6);

    await studio.press(english.play, studio.tracks.filter({ hasText: 'Snow' }));
    await player.getByText('Snow').waitFor();
    await studio.playsBeyond(0.3);
    await studio.press(english.cancel, studio.lines.filter({ hasText: 'Rain' }));
    await studio.says(`Rain: ${english.cancelled}`);
    await studio.playsBeyond(0.6);
    audio.release();
    await studio.says(`Snow: ${english.complete}`);
    await studio.playsToEnd();
    expect(studio.upstream.counts().generations).toBe(2);
  });
});
