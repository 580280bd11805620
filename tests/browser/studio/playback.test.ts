import { expect, it } from 'bun:test';
import type { Page, Response } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import {
  button,
  ENOUGH_TO_PLAY,
  ended,
  generate,
  hurry,
  openStudio,
  order,
  playedBeyond,
  said,
  tracks,
} from './page.ts';

const SILENCE = 0.01;
/** So long that the browser cannot have loaded its middle when a person seeks there. */
const LONG_SECONDS = 150;

/** Waits until the element plays something louder than silence. */
function heard(page: Page): Promise<number> {
  return page
    .locator('audio')
    .evaluate(async (audio: HTMLAudioElement & { captureStream(): MediaStream }, silence) => {
      const context = new AudioContext();
      const analyser = context.createAnalyser();
      context.createMediaStreamSource(audio.captureStream()).connect(analyser);
      const samples = new Float32Array(analyser.fftSize);
      let loudest = 0;
      while (loudest <= silence) {
        await new Promise(requestAnimationFrame);
        analyser.getFloatTimeDomainData(samples);
        for (const sample of samples) loudest = Math.max(loudest, Math.abs(sample));
      }
      await context.close();
      return loudest;
    }, SILENCE);
}

/** Clicks in the middle of the waveform, and returns the response to a request for that range of the file. */
async function seekToMiddle(page: Page, from: RegExp): Promise<Response> {
  const response = page.waitForResponse(
    (response) =>
      response.url().endsWith('/content') && from.test(response.request().headers()['range'] ?? ''),
  );
  await page.getByRole('slider', { name: english.position }).click();
  return response;
}

describeInChromium('a track in the studio', (visit) => {
  it('is heard while the rest of it is still being made', async () => {
    await using studio = await openStudio(visit);
    const { world, page } = studio;
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 10 });
    await playedBeyond(page, 0.5);
    expect(await heard(page)).toBeGreaterThan(SILENCE);
    await said(page, english.arriving);
    expect(await button(page, 'Cancel').isVisible()).toBe(true);

    audio.release();
    await said(page, english.complete);
    await hurry(page);
    await playedBeyond(page, 7);
    await tracks(page).first().waitFor();
    expect(world.upstream.counts().generations).toBe(1);
  });

  it('can be played from its middle after the end', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await generate(page, { seconds: 10 });
    await hurry(page);
    await ended(page);
    const response = await seekToMiddle(page, /^bytes=\d+-$/);
    expect(response.status()).toBe(206);
    const position = await page.locator('audio').evaluate((audio: HTMLAudioElement) => audio.currentTime);
    expect(Math.round(position)).toBe(5);
    expect(await page.locator('audio').evaluate((audio: HTMLAudioElement) => audio.paused)).toBe(true);
    await button(page, english.listen).click();
    await playedBeyond(page, position + 0.3);
  });

  it('is requested from the middle on when a person seeks in it while it plays', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await generate(page, { seconds: LONG_SECONDS });
    await playedBeyond(page, 0.1);
    const response = await seekToMiddle(page, /^bytes=[1-9]\d*-$/);
    expect(response.status()).toBe(206);
    const total = 44 + LONG_SECONDS * 48_000;
    expect(response.headers()['content-range']).toMatch(
      new RegExp(`^bytes [1-9]\\d*-${total - 1}/${total}$`),
    );
    await playedBeyond(page, LONG_SECONDS / 2 + 1);
  });

  it('from the library is played as samples that are not silence', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await generate(page);
    await page.reload();
    await button(tracks(page).first(), 'Play').click();
    await playedBeyond(page, 0.3);
    const loudest = await page.locator('audio').evaluate(async (audio: HTMLAudioElement) => {
      const response = await fetch(audio.src, { credentials: 'include' });
      const decoded = await new OfflineAudioContext(1, 1, 24_000).decodeAudioData(
        await response.arrayBuffer(),
      );
      return decoded.getChannelData(0).reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    });
    expect(loudest).toBeGreaterThan(0.1);
  });
});
