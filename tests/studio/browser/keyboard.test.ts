import { expect, it } from 'bun:test';
import type { Keyboard, Locator } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { swahili } from '../../../src/demo/studio/swahili.ts';
import { eventually } from '../../support/eventually.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio } from './page.ts';

/** More than the studio has places for the focus. */
const MOST_TABS = 60;

/** Presses Tab until the focus is there, where it has to be seen. */
async function reach(target: Locator): Promise<Keyboard> {
  const { keyboard } = target.page();
  await target.waitFor();
  for (let pressed = 0; pressed < MOST_TABS; pressed++) {
    await keyboard.press('Tab');
    const outline = await target.evaluate((element) => {
      const { outlineStyle, boxShadow } = getComputedStyle(element);
      return element === document.activeElement && [outlineStyle, boxShadow];
    });
    if (!outline) continue;
    expect(outline).not.toEqual(['none', 'none']);
    return keyboard;
  }
  throw new Error(`Tab does not come to ${target}`);
}

async function press(target: Locator, key = 'Enter'): Promise<void> {
  await (await reach(target)).press(key);
}

/** Types into a field, whatever was in it. */
async function type(field: Locator, text: string): Promise<void> {
  const keyboard = await reach(field);
  await keyboard.press('Control+A');
  await keyboard.type(text);
}

describeInChromium('a person with a keyboard', () => {
  it('signs in, orders once, plays, seeks, renames, deletes and signs out in Swahili', async () => {
    await using studio = await openStudio({ isSignedIn: false, texts: swahili }, { locale: 'sw-KE' });
    const { world, page, tracks } = studio;
    const focused = page.locator(':focus');
    expect(await page.locator('html').getAttribute('lang')).toBe('sw');
    expect(await page.title()).toContain(swahili.title);

    await press(studio.button(swahili.signIn));
    await type(page.getByRole('textbox', { name: 'Name' }), 'Ada');
    await page.keyboard.press('Enter');
    await studio.accountShows('Ada');
    await studio.isLoaded();
    await page.getByRole('heading', { name: swahili.newTrack }).and(focused).waitFor();

    await type(studio.prompt, 'Mvua juu ya paa');
    await type(studio.length, '30');
    await press(page.getByRole('checkbox', { name: swahili.instrumental }), 'Space');
    // Held down, it is repeated when the order is accepted.
    await reach(studio.button(swahili.generate));
    await page.keyboard.down('Enter');
    await tracks.first().waitFor();
    await page.keyboard.down('Enter');
    await page.keyboard.up('Enter');
    await studio.says(swahili.complete);
    await studio.playsBeyond(0.1);
    await press(studio.button(swahili.pause, tracks.first()));
    await studio.button(swahili.play, tracks.first()).waitFor();
    await page.keyboard.press('Enter');
    await studio.button(swahili.pause, tracks.first()).waitFor();
    await press(studio.slider, 'End');
    await page.waitForFunction(() => document.querySelector('audio')?.ended);

    const dialog = page.getByRole('dialog');
    const isMuted = () => studio.audio.evaluate((audio: HTMLAudioElement) => audio.muted);
    await page.keyboard.press('m');
    expect(await isMuted()).toBe(true);
    await page.keyboard.press('?');
    await dialog.getByText(swahili.keyMute).waitFor();
    await page.keyboard.press('m');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await page.keyboard.press('m');
    expect(await isMuted()).toBe(false);
    await reach(studio.prompt);
    await page.keyboard.type('m?');
    expect(await isMuted()).toBe(false);
    expect(await dialog.count()).toBe(0);
    await press(studio.button(swahili.rename, tracks.first()));
    await dialog.getByRole('textbox', { name: swahili.newName }).and(focused).waitFor();
    // Space plays and pauses only where it is not typed.
    await page.keyboard.press('Control+A');
    await page.keyboard.type(' Theluji nyingi ');
    await page.keyboard.press('Enter');
    await tracks.first().getByText('Theluji nyingi', { exact: true }).waitFor();
    const deletions = () => world.gate.calls.filter((call) => call.startsWith('DELETE')).length;
    await press(studio.button(swahili.delete, tracks.first()));
    for (const text of [swahili.libraryEmpty, swahili.nothingToPlay]) await studio.shows(text);
    await studio.button(swahili.undo).and(focused).waitFor();
    await page.keyboard.press('Enter');
    await studio.button(swahili.play, tracks.first()).and(focused).waitFor();
    await press(studio.button(swahili.delete, tracks.first()));
    await studio.says('Theluji nyingi');
    expect(deletions()).toBe(0);
    // It is deleted also when the page is left before the time is over. The next page asks again, in case of a loss.
    studio.visitor.tolerateProblem(/status of 404 .*\/creations\//);
    await page.goto('about:blank');
    await eventually(() => deletions() > 0, 'the deletion');
    await page.goto(world.studioUrl);
    await studio.shows(swahili.libraryEmpty);
    await press(studio.button(swahili.signOut));
    await studio.button(swahili.signIn).and(focused).waitFor();
    expect(world.upstream.counts().generations).toBe(1);
    // Each place that Tab comes to is looked at.
  }, 120_000);

  it('changes the volume in the player, and switches the single keys off until they are wanted again', async () => {
    await using studio = await openStudio({ isSignedIn: false });
    const { page, audio } = studio;
    const { keyboard } = page;
    const isPaused = () => audio.evaluate((audio: HTMLAudioElement) => audio.paused);
    const sound = () => audio.evaluate(({ muted, volume }: HTMLAudioElement) => (muted ? 0 : volume));
    const dialog = page.getByRole('dialog');
    const switchSingleKeys = async () => {
      await press(studio.button(english.keys));
      await dialog.getByRole('button', { name: english.close }).and(page.locator(':focus')).waitFor();
      await press(dialog.getByRole('checkbox', { name: english.singleKeys }), 'Space');
      await keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
    };
    await press(studio.button(english.play, studio.pieces.first()));
    await studio.playsBeyond(0.1);
    await reach(studio.button(english.mute));
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'ArrowDown', 'Control+ArrowDown'])
      await keyboard.press(key);
    expect(await sound()).toBe(0.9);
    await press(studio.slider, 'ArrowUp');
    expect(await sound()).toBe(0.9);

    await switchSingleKeys();
    await page.reload();
    await studio.isReady();
    await press(studio.button(english.play, studio.pieces.first()));
    await studio.playsBeyond(0.1);
    await reach(studio.slider);
    for (const key of ['m', 'Space', 'Shift+?']) await keyboard.press(key);
    expect([await sound(), await isPaused(), await dialog.count()]).toEqual([0.9, false, 0]);
    await switchSingleKeys();
    await reach(studio.slider);
    await keyboard.press('m');
    expect(await sound()).toBe(0);
    await keyboard.press('Space');
    expect(await isPaused()).toBe(true);
  });
});
