import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, type Studio } from './page.ts';

/** The time at which the player stands. */
function timeOf({ audio }: Studio): Promise<number> {
  return audio.evaluate((element: HTMLAudioElement) => element.currentTime);
}

function isPaused({ audio }: Studio): Promise<boolean> {
  return audio.evaluate((element: HTMLAudioElement) => element.paused);
}

/** What the page has asked the device to call. */
declare const mediaHandlers: Map<string, (details: { action: string; seekTime?: number }) => void>;

function pressMediaKey({ page }: Studio, action: string, seekTime?: number): Promise<void> {
  return page.evaluate(
    ([action, seekTime]) =>
      mediaHandlers.get(action)?.({ action, ...(seekTime !== undefined && { seekTime }) }),
    [action, seekTime] as const,
  );
}

describeInChromium('the controls of the player', (visit) => {
  it('are Space and the arrows, except where these keys are typed', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await studio.generate({ seconds: 30 });
    await studio.playsBeyond(0.1);
    await page.locator('body').focus();
    await page.evaluate(() => document.activeElement instanceof HTMLElement && document.activeElement.blur());
    await page.keyboard.press('Space');
    await studio.button(english.listen).waitFor();
    const before = await timeOf(studio);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    expect(await timeOf(studio)).toBeCloseTo(before + 10, 1);
    await studio.slider.focus();
    await page.keyboard.press('ArrowLeft');
    expect(await timeOf(studio)).toBeCloseTo(before + 5, 1);
    await page.keyboard.press('Space');
    await studio.button(english.pause).waitFor();

    await studio.prompt.fill('a');
    await page.keyboard.press('Space');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.type('b');
    expect(await studio.prompt.inputValue()).toBe('ab ');
    expect(await isPaused(studio)).toBe(false);
  });

  it('are also in the rows, with the next and the previous track, and the title says what plays', async () => {
    await using studio = await openStudio(visit);
    const { page, tracks } = studio;
    await studio.generate({ prompt: 'Rain', seconds: 30 });
    await studio.press(english.pause);
    await studio.generate({ prompt: 'Snow', seconds: 30 });
    const now = studio.region(english.player).locator('.title');
    const isPlaying = (title: string) => page.waitForFunction((title) => document.title === title, title);
    await isPlaying('▶ Snow – Music Studio');
    await studio.press(english.pauseTrack, tracks.first());
    await studio.button(english.listen).waitFor();
    expect(await page.title()).toBe(english.title);
    await studio.press(english.play, tracks.first());
    await studio.button(english.pause).waitFor();

    await studio.press(english.next);
    await isPlaying('▶ Rain – Music Studio');
    expect(await now.textContent()).toBe('Rain');
    await studio.button(english.pauseTrack, tracks.nth(1)).waitFor();
    await studio.button(english.play, tracks.nth(0)).waitFor();
    // The list begins again after its end.
    await studio.press(english.next);
    await isPlaying('▶ Snow – Music Studio');
    await studio.playsBeyond(0.1);
    await studio.slider.click();
    // Far from the beginning, the first press leads there.
    await studio.press(english.previous);
    expect(await timeOf(studio)).toBeLessThan(3);
    expect(await now.textContent()).toBe('Snow');
    await studio.press(english.previous);
    await isPlaying('▶ Rain – Music Studio');
  });

  it('are on the lock screen and on the keys for media', async () => {
    await using studio = await openStudio(visit);
    const { page, visitor } = studio;
    await visitor.context.addInitScript(() => {
      const handlers = new Map<string, unknown>();
      Object.assign(globalThis, { mediaHandlers: handlers });
      navigator.mediaSession.setActionHandler = (action, handler) => void handlers.set(action, handler);
    });
    await page.reload();
    await studio.isLoaded();
    await studio.generate({ prompt: 'Rain', seconds: 30 });
    await studio.press(english.pause);
    await studio.generate({ prompt: 'Snow', seconds: 30 });
    await studio.playsBeyond(0.1);
    const title = () => page.evaluate(() => navigator.mediaSession.metadata?.title);
    expect(await title()).toBe('Snow');
    await pressMediaKey(studio, 'pause');
    expect(await isPaused(studio)).toBe(true);
    await pressMediaKey(studio, 'seekto', 12);
    expect(await timeOf(studio)).toBeCloseTo(12, 1);
    await pressMediaKey(studio, 'seekbackward');
    expect(await timeOf(studio)).toBeCloseTo(2, 1);
    await pressMediaKey(studio, 'play');
    await studio.button(english.pause).waitFor();
    await pressMediaKey(studio, 'nexttrack');
    await page.waitForFunction(() => navigator.mediaSession.metadata?.title === 'Rain');
    await studio.press(english.signOut);
    await studio.button(english.signIn).waitFor();
    expect(await title()).toBeUndefined();
  });

  it('set the volume, which this browser remembers, and mute it', async () => {
    await using studio = await openStudio(visit);
    const { page, audio } = studio;
    await studio.generate({ seconds: 30 });
    const sound = () =>
      audio.evaluate(({ volume, muted }: HTMLAudioElement) => ({ volume: Math.round(volume * 100), muted }));
    const volume = page.getByRole('slider', { name: english.volume });
    await volume.focus();
    for (let press = 0; press < 2; press++) await page.keyboard.press('ArrowDown');
    expect(await sound()).toEqual({ volume: 90, muted: false });
    await studio.press(english.mute);
    expect(await sound()).toEqual({ volume: 90, muted: true });
    await studio.press(english.unmute);
    await page.reload();
    await studio.press(english.play, studio.tracks.first());
    expect(await volume.inputValue()).toBe('0.9');
    expect(await sound()).toEqual({ volume: 90, muted: false });
  });
});
