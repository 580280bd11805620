import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, type Studio } from './page.ts';

const CONTENT = /\/v1\/music\/creations\/[^/]+\/content$/;

/** Breaks the stream that the service worker plays, as a worker that is stopped does. */
function breakStream({ audio }: Studio): Promise<void> {
  return audio.evaluate((element: HTMLAudioElement) => {
    const id = new URL(element.src).pathname.slice('/live/'.length);
    navigator.serviceWorker.controller?.postMessage({ id, kind: 'break' });
  });
}

describeInChromium('the player of the studio', (visit) => {
  it('plays an arriving track from its stream, which cannot be searched until it is complete', async () => {
    await using studio = await openStudio(visit);
    const { page, slider } = studio;
    const live = page.getByText(english.live, { exact: true });
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.3);
    await studio.button(english.pause).waitFor();
    await live.waitFor();
    expect(await slider.isDisabled()).toBe(true);
    const sources = await studio.loads();
    audio.release();
    await studio.says(english.complete);
    await live.waitFor({ state: 'hidden' });
    expect(await slider.isEnabled()).toBe(true);
    expect(await slider.getAttribute('aria-valuetext')).toMatch(/^0:\d\d \/ 0:10$/);
    expect(await sources()).toEqual([]);
  });

  it('plays a track again as its file after the end, and asks for a press where the browser wants one', async () => {
    await using studio = await openStudio(visit);
    await studio.generate();
    await studio.playsToEnd();
    const sources = await studio.loads();
    await studio.audio.evaluate((audio: HTMLAudioElement) => {
      audio.play = () => {
        Reflect.deleteProperty(audio, 'play');
        return Promise.reject(new DOMException('', 'NotAllowedError'));
      };
    });
    await studio.press(english.listen);
    await studio.shows(english.pressListen);
    await studio.press(english.listen);
    await studio.hides(english.pressListen);
    await studio.playsToEnd();
    expect(await sources()).toEqual([expect.stringMatching(CONTENT)]);
  });

  it('plays on when its track is chosen again, and as the file when the stream fails', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ seconds: 20 });
    await studio.playsBeyond(0.3);
    const sources = await studio.loads();
    await studio.press(english.pauseTrack, studio.tracks.first());
    await studio.press(english.play, studio.tracks.first());
    await studio.playsBeyond(0.5);
    expect(await sources()).toEqual([]);
    // The browser could not go on with its source.
    await studio.audio.evaluate((audio) => void audio.dispatchEvent(new Event('error')));
    await studio.playsBeyond(0.7);
    expect(await sources()).toEqual([expect.stringMatching(CONTENT)]);
    expect(await studio.page.getByText(english.notPlayable).count()).toBe(0);
  });

  it('waits when the stream fails, and goes on as the file once the track is complete', async () => {
    await using studio = await openStudio(visit);
    studio.visitor.tolerateProblem(/ERR_|\/live\//);
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.5);
    await breakStream(studio);
    await studio.shows(english.afterArrival);
    audio.release();
    await studio.says(english.complete);
    await studio.playsBeyond(0.5);
    expect(await studio.audio.getAttribute('src')).toMatch(CONTENT);
    await studio.hides(english.afterArrival);
  });

  it('waits where no service worker serves the page, and plays once the track is complete', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await page.evaluate(() => Object.defineProperty(navigator.serviceWorker, 'controller', { value: null }));
    const audio = await studio.orderHeld();
    await studio.shows(english.afterArrival);
    expect(await studio.audio.getAttribute('src')).toBeNull();
    audio.release();
    await studio.playsBeyond(0.3);
    expect(await studio.audio.getAttribute('src')).toMatch(CONTENT);
  });

  it('leaves the track alone that was opened while another one arrives or breaks off', async () => {
    await using studio = await openStudio(visit);
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
    await studio.page.waitForFunction(() => {
      const played = document.querySelector('audio');
      return played && !played.seeking && played.readyState > 1;
    });
    expect(await sources()).toEqual([]);

    await studio.orderHeld({ prompt: 'Hail' });
    await studio.says(english.arriving);
    await studio.press(english.play, snow);
    studio.visitor.expectProblem(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    studio.visitor.expectProblem(/status of 404/);
    await studio.refuseFiles();
    studio.world.upstreamNetwork.break();
    await studio.says(english.broken);
    expect(await studio.region(english.player).getByText('Snow').isVisible()).toBe(true);
  });

  it('says that a track does not play, and loads it again on request', async () => {
    await using studio = await openStudio(visit);
    const { network } = studio.world;
    await studio.generate();
    await studio.page.reload();
    await studio.button(english.play, studio.tracks.first()).waitFor();
    studio.visitor.tolerateProblem(/ERR_/);
    network.cut();
    await studio.press(english.play, studio.tracks.first());
    await studio.shows(english.notPlayable);
    network.repair();
    await studio.press(english.listen);
    await studio.playsBeyond(0.3);
    expect(await studio.page.getByText(english.notPlayable).isVisible()).toBe(false);
  });
});
