import { expect, it } from 'bun:test';
import type { Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import {
  button,
  ENOUGH_TO_PLAY,
  ended,
  generate,
  hurry,
  loads,
  openStudio,
  order,
  playedBeyond,
  region,
  said,
  tracks,
} from './page.ts';

const CONTENT = /\/v1\/music\/creations\/[^/]+\/content$/;

/** Tells the player that the browser could not go on with its source. */
function failSource(page: Page): Promise<void> {
  return page.locator('audio').evaluate((audio) => void audio.dispatchEvent(new Event('error')));
}

/** Breaks the stream that the service worker plays, as a worker that is stopped does. */
function breakStream(page: Page): Promise<void> {
  return page.locator('audio').evaluate((audio: HTMLAudioElement) => {
    const id = new URL(audio.src).pathname.slice('/live/'.length);
    navigator.serviceWorker.controller?.postMessage({ id, kind: 'break' });
  });
}

function slider(page: Page) {
  return page.getByRole('slider', { name: english.position });
}

describeInChromium('the player of the studio', (visit) => {
  it('plays an arriving track from its stream, which cannot be searched until it is complete', async () => {
    await using studio = await openStudio(visit);
    const { world, page } = studio;
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 10 });
    await playedBeyond(page, 0.3);
    await button(page, english.pause).waitFor();
    await page.getByText(english.live, { exact: true }).waitFor();
    expect(await slider(page).isDisabled()).toBe(true);
    const sources = await loads(page);
    audio.release();
    await said(page, english.complete);
    await page.getByText(english.live, { exact: true }).waitFor({ state: 'hidden' });
    expect(await slider(page).isEnabled()).toBe(true);
    expect(await slider(page).getAttribute('aria-valuetext')).toMatch(/^0:\d\d \/ 0:10$/);
    expect(await sources()).toEqual([]);
  });

  it('plays an arrived track again as its file after the end', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await generate(page);
    await hurry(page);
    await ended(page);
    const sources = await loads(page);
    await button(page, english.listen).click();
    await ended(page);
    expect(await sources()).toEqual([expect.stringMatching(CONTENT)]);
  });

  it('goes on as the file at the same place when the stream of an arrived track fails', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await generate(page, { seconds: 20 });
    await playedBeyond(page, 0.5);
    const sources = await loads(page);
    await failSource(page);
    await playedBeyond(page, 0.7);
    expect(await sources()).toEqual([expect.stringMatching(CONTENT)]);
    expect(await page.getByText(english.notPlayable).count()).toBe(0);
  });

  it('waits when the stream fails, and goes on as the file once the track is complete', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    visitor.tolerateProblem(/ERR_|\/live\//);
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 10 });
    await playedBeyond(page, 0.5);
    await breakStream(page);
    await page.getByText(english.afterArrival).waitFor();
    audio.release();
    await said(page, english.complete);
    await playedBeyond(page, 0.5);
    expect(await page.locator('audio').evaluate((each: HTMLAudioElement) => each.src)).toMatch(CONTENT);
    await page.getByText(english.afterArrival).waitFor({ state: 'hidden' });
  });

  it('waits where no service worker serves the page, and plays once the track is complete', async () => {
    await using studio = await openStudio(visit);
    const { world, page } = studio;
    await page.evaluate(() => Object.defineProperty(navigator.serviceWorker, 'controller', { value: null }));
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 10 });
    await page.getByText(english.afterArrival).waitFor();
    expect(await page.locator('audio').getAttribute('src')).toBeNull();
    audio.release();
    await playedBeyond(page, 0.3);
    expect(await page.locator('audio').getAttribute('src')).toMatch(CONTENT);
  });

  it('leaves the track alone that was opened while another one arrives or breaks off', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    await generate(page, { prompt: 'Snow' });
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { prompt: 'Rain', seconds: 10 });
    await said(page, english.arriving);
    await button(tracks(page).filter({ hasText: 'Snow' }), english.play).click();
    await ended(page);
    const sources = await loads(page);
    audio.release();
    await said(page, english.complete);
    await slider(page).click();
    await page.waitForFunction(() => {
      const played = document.querySelector('audio');
      return played && !played.seeking && played.readyState > 1;
    });
    expect(await sources()).toEqual([]);

    world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { prompt: 'Hail', seconds: 10 });
    await said(page, english.arriving);
    await button(tracks(page).filter({ hasText: 'Snow' }), english.play).click();
    visitor.expectProblem(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    world.upstreamNetwork.break();
    await said(page, english.broken);
    expect(await region(page, english.player).getByText('Snow').isVisible()).toBe(true);
  });

  it('plays on when the track that it plays is chosen again in the library', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await generate(page, { seconds: 20 });
    await playedBeyond(page, 0.5);
    const sources = await loads(page);
    await button(tracks(page).first(), english.play).click();
    await playedBeyond(page, 0.8);
    expect(await sources()).toEqual([]);
  });

  it('asks for a press where the browser does not start the sound by itself', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await generate(page);
    await ended(page);
    await page.locator('audio').evaluate((audio: HTMLAudioElement) => {
      audio.play = () => {
        Reflect.deleteProperty(audio, 'play');
        return Promise.reject(new DOMException('', 'NotAllowedError'));
      };
    });
    await button(page, english.listen).click();
    await page.getByText(english.pressListen).waitFor();
    await button(page, english.listen).click();
    await page.getByText(english.pressListen).waitFor({ state: 'hidden' });
    await playedBeyond(page, 0.3);
  });

  it('says that a track does not play, and loads it again on request', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    await generate(page);
    await page.reload();
    await button(tracks(page).first(), english.play).waitFor();
    visitor.tolerateProblem(/ERR_/);
    world.network.cut();
    await button(tracks(page).first(), english.play).click();
    await page.getByText(english.notPlayable).waitFor();
    world.network.mend();
    await button(page, english.listen).click();
    await playedBeyond(page, 0.3);
    expect(await page.getByText(english.notPlayable).isVisible()).toBe(false);
  });
});
