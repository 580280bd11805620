import { expect, it } from 'bun:test';
import type { Locator } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium, visit } from '../chromium.ts';
import { openStudio, type Studio, studioIn } from './page.ts';

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

describeInChromium('a track that arrives', () => {
  it('is heard before it is whole, and then plays on to its end without being loaded again', async () => {
    await using studio = await openStudio();
    const { page } = studio;
    const live = page.getByText(english.live, { exact: true });
    const audio = await studio.orderHeld({ seconds: 12 });
    await isHeard(studio);
    await live.waitFor();
    // It stands once: not in the library before it is whole.
    await studio.shows(english.libraryEmpty);
    expect(await studio.tracks.count()).toBe(0);
    await studio.press(english.pause, studio.lines.first());
    await studio.press(english.play, studio.lines.first());
    await isHeard(studio);
    // A stream has no seeking, so this begins another one, in the middle of a WAV.
    const first = await studio.audio.getAttribute('src');
    await studio.slider.fill('1');
    expect(await studio.audio.getAttribute('src')).not.toBe(first);
    await isHeard(studio);
    await studio.audio.evaluate((audio: HTMLAudioElement) => {
      audio.playbackRate = 16;
    });
    await studio.shows(english.stalled);

    audio.release();
    await studio.hides(english.stalled);
    await studio.says(english.complete);
    await live.waitFor({ state: 'hidden' });
    await studio.tracks.first().waitFor();
    expect(await studio.tracks.count()).toBe(1);
    await page.waitForFunction(() => document.querySelector('audio')?.ended);
    expect(await studio.slider.getAttribute('aria-valuetext')).toBe('0:12 / 0:12');
    expect(await studio.audio.getAttribute('src')).toStartWith('/live/');
    expect(studio.gate.calls.filter((call) => call.startsWith('GET') && call.endsWith('/content'))).toEqual(
      [],
    );
    expect(studio.upstream.counts().generations).toBe(1);
    await studio.press(english.listen);
    await isHeard(studio);
    expect(await studio.audio.getAttribute('src')).toEndWith('/content');
  });

  it('plays on as the file when its stream breaks, before or after it is whole', async () => {
    await using studio = await openStudio();
    // The browser asks for the rest of the stream, which there is not.
    studio.visitor.tolerateProblem(/status of 404.*live/);
    const arriving = await studio.orderHeld();
    await studio.playsBeyond(1);
    // As when the browser stops the service worker.
    await studio.page.evaluate(() => {
      const id = document.querySelector('audio')?.src.split('/').at(-1);
      navigator.serviceWorker.controller?.postMessage({ id, kind: 'break' });
    });
    await studio.shows(english.afterArrival);
    arriving.release();
    await studio.says(english.complete);
    expect(await studio.audio.getAttribute('src')).toEndWith('/content');
    expect(await studio.audio.evaluate((audio: HTMLAudioElement) => audio.currentTime)).toBeGreaterThan(1);
    await studio.press(english.pause);
    await studio.generate();
    await studio.audio.dispatchEvent('error');
    expect(await studio.audio.getAttribute('src')).toEndWith('/content');
  });

  it('waits without a service worker, and plays as the file when it is whole', async () => {
    await using studio = await openStudio();
    await studio.visitor.context.addInitScript('Object.defineProperty(navigator, "serviceWorker", {})');
    await studio.page.reload();
    await studio.page.getByRole('combobox', { name: english.model }).filter({ hasText: 'Sandbox' }).waitFor();
    const audio = await studio.orderHeld();
    await studio.shows(english.afterArrival);
    audio.release();
    await studio.says(english.complete);
    await isHeard(studio);
    await studio.hides(english.afterArrival);
    // Also when nobody wants to hear it then, as when another tab plays.
    const tellSound = () => studio.page.evaluate(() => new BroadcastChannel('studio').postMessage('sound'));
    await tellSound();
    await studio.button(english.listen).waitFor();
    const next = await studio.orderHeld({ prompt: 'Snow' });
    await studio.shows(english.afterArrival);
    await tellSound();
    next.release();
    await studio.says(english.complete);
    await studio.hides(english.afterArrival);
    expect(await studio.audio.evaluate((audio: HTMLAudioElement) => audio.paused)).toBe(true);
  });
});

/** The cover that is shown there, once the browser has decoded it. */
async function coverIn(place: Locator): Promise<string> {
  const cover = place.locator('img');
  await cover.evaluate((image: HTMLImageElement) => image.decode());
  return cover.evaluate((image: HTMLImageElement) => image.src);
}

describeInChromium('a track', () => {
  it('is open again after a reload, where it was, until its owner signs out', async () => {
    await using studio = await openStudio();
    const { audio, page } = studio;
    const position = () => audio.evaluate((element: HTMLAudioElement) => element.currentTime);
    await studio.generate({ prompt: 'Rain', seconds: 20 });
    await studio.generate({ prompt: 'Snow', seconds: 20 });
    await studio.press(english.play, studio.tracks.filter({ hasText: 'Rain' }));
    await studio.slider.fill('7');
    await studio.playsBeyond(7);
    await studio.press(english.pause);
    const before = await position();
    await studio.reload();
    const player = studio.region(english.player);
    await player.getByText('Rain').waitFor();
    await studio.playsBeyond(6);
    expect(await position()).toBeCloseTo(before, 1);
    expect(await audio.evaluate((element: HTMLAudioElement) => element.paused)).toBe(true);
    await studio.press(english.signOut);
    await studio.button(english.signIn).waitFor();
    await page.reload();
    await studio.press(english.play, studio.pieces.first());
    await studio.playsBeyond(0.1);
    await page.reload();
    await player.getByText('Rain on a tin roof').waitFor();
  });

  it('has one name and one cover: in the library, in the player, and where somebody else hears it', async () => {
    await using studio = await openStudio();
    await studio.generate({ isPublic: true });
    await studio.page.waitForFunction(() => document.querySelector('audio')?.ended);
    await using stranger = await visit();
    const link = await studio.sharedLink();
    const id = new URL(link).searchParams.get('listen') ?? '';
    const found = Promise.withResolvers<void>();
    await stranger.context.route(`**/api/upstream/v1/music/public/${id}`, async (route) => {
      await found.promise;
      await route.fallback();
    });
    const page = await stranger.open(link);
    const listener = studioIn(page);
    const shared = page.locator('.shared');
    await listener.press(english.play, listener.pieces.first());
    found.resolve();
    // It does not interrupt what plays, and can be had all the same.
    await listener.button(english.play, shared).waitFor();
    await listener.button(english.pause, listener.pieces.first()).waitFor();
    await listener.press(english.play, shared);
    expect(await listener.audio.getAttribute('src')).toContain(id);
    const preview = await page.locator('meta[property="og:image"]').getAttribute('content');
    await studio.press(english.rename, studio.tracks.first());
    await studio.page.getByRole('dialog').getByRole('textbox').fill('Patter');
    await studio.page.keyboard.press('Enter');
    await studio.region(english.player).getByText('Patter').waitFor();
    await studio.page.waitForFunction(() => navigator.mediaSession.metadata?.title === 'Patter');
    await studio.press(english.listen);
    await studio.page.waitForFunction(() => document.title.includes('Patter'));
    await studio.page.waitForFunction(() => document.querySelector('audio')?.ended);
    // It cannot be read from the session.
    await studio.page.evaluate(() => {
      navigator.mediaSession.setPositionState = (state) => Object.assign(globalThis, { state });
    });
    await studio.slider.fill('2');
    const atTwo = () => Reflect.get(globalThis, 'state')?.position === 2;
    await studio.page.waitForFunction(atTwo);
    expect(await studio.page.evaluate(() => Reflect.get(globalThis, 'state').duration)).toBe(3);
    const onDevice = await studio.page.evaluate(() => {
      const { metadata, playbackState } = navigator.mediaSession;
      return {
        title: metadata?.title,
        artist: metadata?.artist,
        cover: metadata?.artwork[0]?.src,
        playbackState,
      };
    });
    expect(onDevice).toMatchObject({ title: 'Patter', artist: 'Ada' });
    const places = [studio.tracks.first(), studio.region(english.player), shared];
    const covers = await Promise.all(places.map(coverIn));
    expect(new Set([...covers, preview, onDevice.cover])).toEqual(new Set([covers[0] ?? null]));
  });
});

describeInChromium('a person who has not signed in', () => {
  it('hears the public pieces, one after the other, without a session', async () => {
    await using studio = await openStudio({ isSignedIn: false });
    const { audio, pieces } = studio;
    await pieces.nth(2).waitFor();
    expect(await pieces.count()).toBe(3);
    await studio.press(english.play, pieces.nth(1));
    await isHeard(studio);
    await studio.press(english.pause, pieces.nth(1));
    await studio.button(english.listen).click();
    await audio.evaluate((element: HTMLAudioElement) => {
      element.currentTime = 19.5;
    });
    await studio.button(english.pause, pieces.nth(2)).waitFor();
    await isHeard(studio);
    expect(await audio.getAttribute('src')).toContain('/api/upstream/v1/music/public/');
    expect(await pieces.first().getAttribute('aria-current')).toBe('false');
    await studio.signIn('Ada');
    await pieces.first().waitFor({ state: 'hidden' });
  });
});
