import { expect, it } from 'bun:test';
import type { Locator, Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { swahili } from '../../../src/demo/studio/swahili.ts';
import { messages } from '../../../src/gateway/http/messages.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, type Studio } from './page.ts';

/** More than the studio has places for the focus. */
const MOST_TABS = 60;

/** Presses Tab until the focus is there, where it has to be seen. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let pressed = 0; pressed < MOST_TABS; pressed++) {
    await page.keyboard.press('Tab');
    const isThere = await target.evaluate((element) => element === document.activeElement);
    if (!isThere) continue;
    const { outline, shadow } = await target.evaluate((element) => {
      const style = getComputedStyle(element);
      return { outline: style.outlineStyle, shadow: style.boxShadow };
    });
    expect([outline, shadow]).not.toEqual(['none', 'none']);
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
  await tabTo(page, field);
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
}

/** Collects what the live region of the form says from now on. */
async function listen(studio: Studio): Promise<() => Promise<readonly string[]>> {
  const liveRegion = studio.region(english.newTrack).getByRole('status');
  const heard = await liveRegion.evaluateHandle((element) => {
    const texts: string[] = [];
    const observer = new MutationObserver(() => texts.push(element.textContent.trim()));
    observer.observe(element, { childList: true, characterData: true, subtree: true });
    return texts;
  });
  return () => heard.jsonValue();
}

describeInChromium('a person with a keyboard and a screen reader', (visit) => {
  it('signs in, generates, plays, seeks, gets an error and signs out in Swahili', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false, texts: swahili }, { locale: 'sw-KE' });
    const { world, visitor, page } = studio;
    expect(await page.locator('html').getAttribute('lang')).toBe('sw');
    expect(await page.title()).toContain(swahili.title);

    await press(page, studio.button(swahili.signIn));
    await type(page, page.getByRole('textbox', { name: 'Name' }), 'Ada');
    await page.keyboard.press('Enter');
    await studio.region(swahili.account).getByText('Ada').waitFor();
    await studio.isLoaded();

    await type(page, studio.prompt, 'Mvua juu ya paa');
    await type(page, studio.length, '30');
    await press(page, page.getByRole('checkbox', { name: swahili.instrumental }), 'Space');
    await press(page, studio.button(swahili.generate));
    await studio.says(swahili.complete);
    await studio.playsBeyond(0.3);

    // Its row pauses the track that plays, and plays it again.
    await press(page, studio.button(swahili.pauseTrack, studio.tracks.first()));
    await studio.button(swahili.play, studio.tracks.first()).waitFor();
    await page.keyboard.press('Enter');
    await studio.playsBeyond(0.1);
    await press(page, studio.slider, 'End');
    await studio.ends();

    visitor.expectProblem(/status of 502/);
    // The browser may not have loaded all of the file.
    visitor.tolerateProblem(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    await world.upstreamNetwork[Symbol.asyncDispose]();
    await press(page, studio.button(swahili.generate));
    await page.getByRole('alert').filter({ hasText: swahili.later }).waitFor();
    expect(await studio.alertText()).toContain(messages.sw.upstreamUnreachable);
    await press(page, studio.button(swahili.signOut));
    await studio.button(swahili.signIn).waitFor();
    expect(world.upstream.counts().generations).toBe(1);
  });

  it('hears of a generation in a few sentences, however many pieces it comes in', async () => {
    await using studio = await openStudio(visit);
    const heard = await listen(studio);
    const audio = await studio.orderHeld({ seconds: 20 });
    await studio.playsBeyond(0.3);
    audio.release();
    await studio.says(english.complete);
    expect(await heard()).toEqual([english.asking, english.arriving, english.complete]);
  });
});
