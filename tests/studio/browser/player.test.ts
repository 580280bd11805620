import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { isHeard, waveformIsDrawn } from './media.ts';
import { openStudio, type Studio } from './page.ts';

function stateOf({ audio }: Studio) {
  return audio.evaluate(({ currentTime, paused, muted, volume }: HTMLAudioElement) => ({
    ...{ paused, muted, volume: Math.round(volume * 100) },
    at: Math.round(currentTime),
  }));
}

/** What the page has asked the device to call. */
declare const mediaHandlers: Map<string, (details: { action: string; seekTime?: number }) => void>;

function pressMediaKey({ page }: Studio, action: string, seekTime = 0): Promise<void> {
  return page.evaluate(([action, seekTime]) => mediaHandlers.get(action)?.({ action, seekTime }), [
    action,
    seekTime,
  ] as const);
}

describeInChromium('a complete track in the player', (visit) => {
  it('is heard, with a waveform that is fetched once in this browser, and forgotten at sign-out', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await studio.generate({ seconds: 10 });
    await waveformIsDrawn(studio);
    await studio.press(english.signOut);
    await studio.signIn('Ada');
    let fetches = 0;
    page.on('request', (request) => {
      if (request.resourceType() === 'fetch' && request.url().endsWith('/content')) fetches++;
    });
    for (const _ of ['fetched', 'kept']) {
      await studio.reload();
      await studio.press(english.play, studio.tracks.first());
      await isHeard(studio);
      await waveformIsDrawn(studio);
      expect(fetches).toBe(1);
    }
  });
});

describeInChromium('the controls of the player', (visit) => {
  it('are Space and the arrows, except where these keys are typed, and a volume that the browser remembers', async () => {
    await using studio = await openStudio(visit);
    const { page, audio, prompt } = studio;
    await studio.generate({ seconds: 30 });
    await studio.playsBeyond(0.1);
    await page.evaluate(() => document.activeElement instanceof HTMLElement && document.activeElement.blur());
    await page.keyboard.press('Space');
    await studio.button(english.listen).waitFor();
    await audio.evaluate((element: HTMLAudioElement) => {
      element.currentTime = 1;
    });
    for (const _ of [6, 11]) await page.keyboard.press('ArrowRight');
    expect(await stateOf(studio)).toMatchObject({ at: 11, paused: true });
    await studio.slider.focus();
    await page.keyboard.press('ArrowLeft');
    expect((await stateOf(studio)).at).toBe(6);
    await page.keyboard.press('Space');
    await studio.button(english.pause).waitFor();
    await prompt.fill('a');
    for (const key of ['Space', 'ArrowLeft', 'b']) await page.keyboard.press(key);
    expect(await prompt.inputValue()).toBe('ab ');
    expect((await stateOf(studio)).paused).toBe(false);

    const volume = page.getByRole('slider', { name: english.volume });
    await volume.focus();
    for (const _ of [95, 90]) await page.keyboard.press('ArrowDown');
    await studio.press(english.mute);
    expect(await stateOf(studio)).toMatchObject({ volume: 90, muted: true });
    await studio.press(english.unmute);
    await page.reload();
    await studio.press(english.play, studio.tracks.first());
    expect(await volume.inputValue()).toBe('0.9');
    expect(await stateOf(studio)).toMatchObject({ volume: 90, muted: false });
  });

  it('are in the rows, beside the track, on the lock screen and on the keys for media', async () => {
    await using studio = await openStudio(visit);
    const { page, visitor, tracks } = studio;
    await visitor.context.addInitScript(() => {
      const handlers = new Map<string, unknown>();
      Object.assign(globalThis, { mediaHandlers: handlers });
      navigator.mediaSession.setActionHandler = (action, handler) => void handlers.set(action, handler);
    });
    await studio.reload();
    const plays = async (track: string) => {
      const isShown = (track: string) =>
        document.title === `▶ ${track} – Music Studio` && navigator.mediaSession.metadata?.title === track;
      await page.waitForFunction(isShown, track);
      expect(await studio.player.locator('.title').textContent()).toBe(track);
    };
    await studio.generate({ prompt: 'Rain', seconds: 30 });
    await studio.press(english.pause);
    await studio.generate({ prompt: 'Snow', seconds: 30 });
    await plays('Snow');
    await studio.press(english.pause, tracks.first());
    await studio.button(english.listen).waitFor();
    expect(await page.title()).toBe(english.title);
    await studio.press(english.play, tracks.first());
    await studio.press(english.next);
    await plays('Rain');
    await studio.button(english.pause, tracks.nth(1)).waitFor();
    await studio.button(english.play, tracks.nth(0)).waitFor();
    // The list begins again after its end.
    await pressMediaKey(studio, 'nexttrack');
    await plays('Snow');
    await studio.playsBeyond(0.1);
    await pressMediaKey(studio, 'pause');
    await pressMediaKey(studio, 'seekto', 22);
    await pressMediaKey(studio, 'seekbackward');
    expect(await stateOf(studio)).toMatchObject({ at: 12, paused: true });
    await pressMediaKey(studio, 'play');
    await studio.button(english.pause).waitFor();
    // Far from the beginning, the first press leads there.
    await studio.press(english.previous);
    expect((await stateOf(studio)).at).toBeLessThan(3);
    await plays('Snow');
    await studio.press(english.previous);
    await plays('Rain');
    await studio.press(english.signOut);
    await studio.button(english.signIn).waitFor();
    expect(await page.evaluate(() => navigator.mediaSession.metadata)).toBeNull();
  });
});
