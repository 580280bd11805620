import { expect, it } from 'bun:test';
import type { Response } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, type Studio } from './page.ts';

const SILENCE = 0.01;
/** So long that the browser cannot have loaded its middle when a person seeks there. */
const LONG_SECONDS = 150;

/** Waits until the element plays something louder than silence. */
function heard({ audio }: Studio): Promise<number> {
  return audio.evaluate(async (element: HTMLAudioElement & { captureStream(): MediaStream }, silence) => {
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(element.captureStream()).connect(analyser);
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
async function seekToMiddle({ page, slider }: Studio, from: RegExp): Promise<Response> {
  const response = page.waitForResponse(
    (response) =>
      response.url().endsWith('/content') && from.test(response.request().headers()['range'] ?? ''),
  );
  await slider.click();
  return response;
}

describeInChromium('a track in the studio', (visit) => {
  it('is heard while the rest of it is still being made', async () => {
    await using studio = await openStudio(visit);
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.3);
    expect(await heard(studio)).toBeGreaterThan(SILENCE);
    await studio.says(english.arriving);
    expect(await studio.button(english.cancel).isVisible()).toBe(true);

    audio.release();
    await studio.says(english.complete);
    await studio.playsToEnd();
    await studio.playsBeyond(7);
    await studio.tracks.first().waitFor();
    expect(studio.upstream.counts().generations).toBe(1);
  });

  it('can be played from its middle after the end', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ seconds: 10 });
    await studio.playsToEnd();
    const response = await seekToMiddle(studio, /^bytes=\d+-$/);
    expect(response.status()).toBe(206);
    const position = await studio.audio.evaluate((audio: HTMLAudioElement) => audio.currentTime);
    expect(Math.round(position)).toBe(5);
    expect(await studio.audio.evaluate((audio: HTMLAudioElement) => audio.paused)).toBe(true);
    await studio.press(english.listen);
    await studio.playsBeyond(position + 0.3);
  });

  it('is requested from the middle on when a person seeks in it while it plays', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ seconds: LONG_SECONDS });
    await studio.playsBeyond(0.1);
    const response = await seekToMiddle(studio, /^bytes=[1-9]\d*-$/);
    expect(response.status()).toBe(206);
    const total = 44 + LONG_SECONDS * 48_000;
    expect(response.headers()['content-range']).toMatch(
      new RegExp(`^bytes [1-9]\\d*-${total - 1}/${total}$`),
    );
    await studio.playsBeyond(LONG_SECONDS / 2 + 1);
  });

  it('from the library is played as samples that are not silence', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ seconds: 20 });
    await studio.page.reload();
    await studio.press(english.play, studio.tracks.first());
    await studio.playsBeyond(0.1);
    expect(await heard(studio)).toBeGreaterThan(SILENCE);
  });
});
