import { expect, it } from 'bun:test';
import type { Locator, Page } from 'playwright-core';
import { swahili } from '../../../src/demo/studio/swahili.ts';
import { messages } from '../../../src/gateway/http/messages.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio } from './page.ts';

/** More than the studio has places for the focus. */
const MOST_TABS = 60;

/** Presses Tab until the focus is there, where it has to be seen. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let pressed = 0; pressed < MOST_TABS; pressed++) {
    await page.keyboard.press('Tab');
    const outline = await target.evaluate((element) => {
      const { outlineStyle, boxShadow } = getComputedStyle(element);
      return element === document.activeElement && [outlineStyle, boxShadow];
    });
    if (!outline) continue;
    expect(outline).not.toEqual(['none', 'none']);
    return;
  }
  throw new Error(`Tab does not come to ${target}`);
}

async function press(page: Page, target: Locator, key = 'Enter'): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press(key);
}

/** Types into a field, whatever was in it. */
async function type(page: Page, field: Locator, text: string): Promise<void> {
  await press(page, field, 'Control+A');
  await page.keyboard.type(text);
}

describeInChromium('a person with a keyboard', (visit) => {
  it('signs in, generates, plays, seeks, gets an error and signs out in Swahili', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false, texts: swahili }, { locale: 'sw-KE' });
    const { world, visitor, page } = studio;
    expect(await page.locator('html').getAttribute('lang')).toBe('sw');
    expect(await page.title()).toContain(swahili.title);

    await press(page, studio.button(swahili.signIn));
    await type(page, page.getByRole('textbox', { name: 'Name' }), 'Ada');
    await page.keyboard.press('Enter');
    await studio.accountShows('Ada');
    await studio.isLoaded();

    await type(page, studio.prompt, 'Mvua juu ya paa');
    await type(page, studio.length, '30');
    await press(page, page.getByRole('checkbox', { name: swahili.instrumental }), 'Space');
    await press(page, studio.button(swahili.generate));
    await studio.says(swahili.complete);
    await studio.playsBeyond(0.1);

    // Its row pauses the track that plays, and plays it again.
    await press(page, studio.button(swahili.pauseTrack, studio.tracks.first()));
    await studio.button(swahili.play, studio.tracks.first()).waitFor();
    await page.keyboard.press('Enter');
    await studio.button(swahili.pauseTrack, studio.tracks.first()).waitFor();
    await press(page, studio.slider, 'End');
    await page.waitForFunction(() => document.querySelector('audio')?.ended);

    visitor.expectProblem(/status of 502/);
    // The browser may not have loaded all of the file.
    visitor.tolerateProblem(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    await world.upstreamNetwork[Symbol.asyncDispose]();
    await press(page, studio.button(swahili.generate));
    await studio.warns(swahili.later);
    expect(await studio.alert.textContent()).toContain(messages.sw.upstreamUnreachable);
    await press(page, studio.button(swahili.signOut));
    await studio.button(swahili.signIn).waitFor();
    expect(world.upstream.counts().generations).toBe(1);
  });
});
