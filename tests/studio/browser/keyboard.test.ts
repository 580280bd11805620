import { expect, it } from 'bun:test';
import type { Locator } from 'playwright-core';
import { swahili } from '../../../src/demo/studio/swahili.ts';
import { messages } from '../../../src/gateway/http/messages.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio } from './page.ts';

/** More than the studio has places for the focus. */
const MOST_TABS = 60;

/** Presses Tab until the focus is there, where it has to be seen, and then the key. */
async function press(target: Locator, key = 'Enter'): Promise<void> {
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
    return keyboard.press(key);
  }
  throw new Error(`Tab does not come to ${target}`);
}

/** Types into a field, whatever was in it. */
async function type(field: Locator, text: string): Promise<void> {
  await press(field, 'Control+A');
  await field.page().keyboard.type(text);
}

describeInChromium('a person with a keyboard', (visit) => {
  it('signs in, generates, plays, seeks, gets an error, deletes and signs out in Swahili', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false, texts: swahili }, { locale: 'sw-KE' });
    const { world, visitor, page, tracks } = studio;
    const focused = page.locator(':focus');
    expect(await page.locator('html').getAttribute('lang')).toBe('sw');
    expect(await page.title()).toContain(swahili.title);

    await press(studio.button(swahili.signIn));
    await type(page.getByRole('textbox', { name: 'Name' }), 'Ada');
    await page.keyboard.press('Enter');
    await studio.accountShows('Ada');
    await studio.isLoaded();

    await type(studio.prompt, 'Mvua juu ya paa');
    await type(studio.length, '30');
    await press(page.getByRole('checkbox', { name: swahili.instrumental }), 'Space');
    await press(studio.button(swahili.generate));
    await studio.says(swahili.complete);
    await studio.playsBeyond(0.1);
    await press(studio.button(swahili.pause, tracks.first()));
    await studio.button(swahili.play, tracks.first()).waitFor();
    await page.keyboard.press('Enter');
    await studio.button(swahili.pause, tracks.first()).waitFor();
    await press(studio.slider, 'End');
    await page.waitForFunction(() => document.querySelector('audio')?.ended);

    visitor.expectProblem(/status of 502/);
    world.upstreamNetwork.cut();
    await press(studio.button(swahili.publish, tracks.first()));
    await studio.warns(swahili.later);
    expect(await studio.alert.textContent()).toContain(messages.sw.upstreamUnreachable);
    world.upstreamNetwork.repair();
    await press(studio.button(swahili.delete, tracks.first()));
    const dialog = page.getByRole('dialog');
    await studio.button(swahili.cancel, dialog).and(focused).waitFor();
    await press(studio.button(swahili.delete, dialog));
    await studio.shows(swahili.libraryEmpty);
    await page.getByRole('heading', { name: swahili.library }).and(focused).waitFor();
    await press(studio.button(swahili.signOut));
    await studio.button(swahili.signIn).waitFor();
    expect(world.upstream.counts().generations).toBe(1);
  });
});
