import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio, type Studio } from './page.ts';

/** Waits until the element plays something louder than silence. */
async function isHeard(studio: Studio): Promise<void> {
  await studio.playsBeyond(0.1);
  await studio.audio.evaluate(async (element: HTMLAudioElement & { captureStream(): MediaStream }) => {
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(element.captureStream()).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    while (!samples.some((sample) => Math.abs(sample) > 0.01)) {
      await new Promise(requestAnimationFrame);
      analyser.getFloatTimeDomainData(samples);
    }
    await context.close();
  });
}

/** Waits until the waveform has bars that are higher than those of silence. */
async function waveformIsDrawn({ page }: Studio): Promise<void> {
  await page.waitForFunction(() => {
    const host = document.querySelector('[data-part=waveform] > div');
    const canvas = host?.shadowRoot?.querySelector('canvas');
    if (!canvas || canvas.width === 0) return false;
    const copy = new OffscreenCanvas(canvas.width, Math.ceil(canvas.height / 4));
    const context = copy.getContext('2d');
    context?.drawImage(canvas, 0, 0);
    return context?.getImageData(0, 0, copy.width, copy.height).data.some(Boolean);
  });
}

describeInChromium('a track that arrives', (visit) => {
  it('is heard and drawn before it is whole, and then plays on to its end without being loaded again', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    const live = page.getByText(english.live, { exact: true });
    const audio = await studio.orderHeld({ seconds: 12 });
    await isHeard(studio);
    await live.waitFor();
    await waveformIsDrawn(studio);
    // A stream has no seeking, so this begins another one, in the middle of a WAV.
    const first = await studio.audio.getAttribute('src');
    await studio.slider.fill('1');
    expect(await studio.audio.getAttribute('src')).not.toBe(first);
    await isHeard(studio);
    await studio.playsFast();
    await studio.shows(english.stalled);

    audio.release();
    await studio.hides(english.stalled);
    await studio.says(english.complete);
    await live.waitFor({ state: 'hidden' });
    await page.waitForFunction(() => document.querySelector('audio')?.ended);
    expect(await studio.slider.getAttribute('aria-valuetext')).toBe('0:12 / 0:12');
    expect(await studio.audio.getAttribute('src')).toStartWith('/live/');
    expect(studio.gate.calls.filter((call) => call.startsWith('GET') && call.endsWith('/content'))).toEqual(
      [],
    );
    expect(studio.upstream.counts().generations).toBe(1);
  });

  it('waits without a service worker, and plays as the file when it is whole', async () => {
    await using studio = await openStudio(visit);
    await studio.visitor.context.addInitScript('Object.defineProperty(navigator, "serviceWorker", {})');
    await studio.page.reload();
    await studio.page.getByRole('combobox', { name: english.model }).filter({ hasText: 'Sandbox' }).waitFor();
    const audio = await studio.orderHeld();
    await studio.shows(english.afterArrival);
    audio.release();
    await studio.says(english.complete);
    await isHeard(studio);
    await studio.hides(english.afterArrival);
  });

  it('leaves the player to the track that is heard, is heard from its row, and is followed by the next', async () => {
    await using studio = await openStudio(visit);
    const { player } = studio;
    const rain = await studio.orderHeld({ prompt: 'Rain' });
    await studio.playsBeyond(0.1);
    const snow = await studio.orderHeld({ prompt: 'Snow' });
    await studio.says(`Snow: ${english.arriving}`);
    expect(await player.getByText('Rain').isVisible()).toBe(true);

    await studio.press(english.play, studio.tracks.filter({ hasText: 'Snow' }));
    await player.getByText('Snow').waitFor();
    await studio.playsBeyond(0.1);
    rain.release();
    await studio.says(`Rain: ${english.complete}`);
    expect(await player.getByText('Snow').isVisible()).toBe(true);
    // Only one of them is listened to.
    await studio.button(english.stopListening, studio.lines.filter({ hasText: 'Snow' })).waitFor();
    snow.release();
    await studio.says(`Snow: ${english.complete}`);
    await studio.playsFast();
    await player.getByText('Rain').waitFor();
  });
});

describeInChromium('a complete track', (visit) => {
  it('is drawn, changed, paused by Space, and named outside the page until sign-out', async () => {
    await using studio = await openStudio(visit);
    const { page, tracks } = studio;
    // So long that neither ends by itself before the test has waited too long for the other.
    for (const prompt of ['Rain', 'Snow']) {
      await studio.generate({ prompt, seconds: 90 });
      await studio.press(english.pause, tracks.first());
    }
    await studio.reload();
    await studio.press(english.play, tracks.first());
    await studio.press(english.next);
    await page.waitForFunction(
      () => document.title.startsWith('▶ Rain – ') && navigator.mediaSession.metadata?.title === 'Rain',
    );
    await studio.button(english.pause, tracks.nth(1)).waitFor();
    await waveformIsDrawn(studio);
    await studio.slider.press('Space');
    await studio.button(english.listen).waitFor();
    await studio.press(english.signOut);
    await studio.button(english.signIn).waitFor();
    expect(await page.evaluate(() => navigator.mediaSession.metadata)).toBeNull();
  });
});
