import { expect, it } from 'bun:test';
import type { Locator, Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { swahili } from '../../../src/demo/studio/swahili.ts';
import { messages } from '../../../src/gateway/http/messages.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { startDemoWorld } from '../../support/demo-world.ts';
import {
  alertText,
  button,
  ENOUGH_TO_PLAY,
  ended,
  loaded,
  openStudio,
  order,
  playedBeyond,
  region,
  said,
} from './page.ts';

const LANGUAGES = [
  ['en-GB', 'en', english],
  ['sw-KE', 'sw', swahili],
] as const;

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
async function listen(page: Page): Promise<() => Promise<readonly string[]>> {
  const liveRegion = region(page, english.newTrack).getByRole('status');
  const heard = await liveRegion.evaluateHandle((element) => {
    const texts: string[] = [];
    new MutationObserver(() => texts.push(element.textContent.trim())).observe(element, {
      childList: true,
      characterData: true,
      subtree: true,
    });
    return texts;
  });
  return () => heard.jsonValue();
}

describeInChromium('a person with a keyboard and a screen reader', (visit) => {
  it.each(LANGUAGES)(
    'signs in, generates, plays, seeks and signs out in %s',
    async (locale, language, texts) => {
      await using world = await startDemoWorld();
      await using visitor = await visit({ locale });
      const page = await visitor.open(world.studioUrl);
      expect(await page.locator('html').getAttribute('lang')).toBe(language);
      expect(await page.title()).toContain(texts.title);

      await press(page, button(page, texts.signIn));
      await type(page, page.getByRole('textbox', { name: 'Name' }), 'Ada');
      await page.keyboard.press('Enter');
      await region(page, texts.session).getByText('Ada').waitFor();
      await loaded(page, texts);

      await type(page, page.getByRole('textbox', { name: texts.prompt }), 'Rain on a tin roof');
      await type(page, page.getByRole('spinbutton', { name: texts.length }), '30');
      await press(page, page.getByRole('checkbox', { name: texts.instrumental }), 'Space');
      await press(page, button(page, texts.generate));
      await said(page, texts.complete);
      await playedBeyond(page, 0.3);

      await press(page, button(page.getByRole('list', { name: texts.library }), texts.play).first());
      await playedBeyond(page, 0.1);
      await press(page, page.getByRole('slider', { name: texts.position }), 'End');
      await ended(page);
      await press(page, button(page, texts.signOut));
      await button(page, texts.signIn).waitFor();
      expect(world.upstream.counts()).toMatchObject({ generations: 1, logouts: 1 });
    },
  );

  it('gets the errors of the gateway in Swahili too', async () => {
    await using studio = await openStudio(visit, { texts: swahili }, { locale: 'sw-KE' });
    const { world, visitor, page } = studio;
    await world.upstreamNetwork[Symbol.asyncDispose]();
    visitor.expectProblem(/status of 502/);
    await type(page, page.getByRole('textbox', { name: swahili.prompt }), 'Mvua juu ya paa');
    await press(page, button(page, swahili.generate));
    await page.getByRole('alert').filter({ hasText: swahili.later }).waitFor();
    expect(await alertText(page)).toContain(messages.upstreamUnreachable.sw);
  });

  it('hears of a generation in a few sentences, however many pieces it comes in', async () => {
    await using studio = await openStudio(visit);
    const { world, page } = studio;
    const heard = await listen(page);
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 20 });
    await playedBeyond(page, 0.3);
    audio.release();
    await said(page, english.complete);
    expect(await heard()).toEqual([english.asking, english.arriving, english.complete]);
  });
});
