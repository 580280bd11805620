import { expect, it } from 'bun:test';
import type { Locator } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, Studio } from './page.ts';

const PHONE = { width: 390, height: 844 };
const LOW = { width: 1280, height: 500 };
const TABLET = { width: 800, height: 700 };
const WIDE = { width: 1280, height: 800 };
/** A window of 1280 x 720, as the page sees it with a zoom of 200 and 400 %. */
const ZOOMED = [
  { width: 640, height: 360 },
  { width: 320, height: 180 },
] as const;

async function boxOf(element: Locator) {
  const box = await element.boundingBox();
  if (!box) throw new Error(`${element} is not shown`);
  return { ...box, bottom: box.y + box.height, right: box.x + box.width };
}

describeInChromium('the layout of the studio', (visit) => {
  it('docks the player at the bottom of a small or zoomed window, slim and always in view', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await studio.generate({ seconds: 20 });
    const player = studio.region(english.player);
    for (const size of [PHONE, ...ZOOMED]) {
      await page.setViewportSize(size);
      for (const end of [0, 100_000]) {
        await page.evaluate((top) => scrollTo(0, top), end);
        const { height, bottom } = await boxOf(player);
        expect(Math.round(bottom)).toBe(size.height);
        expect(height).toBeLessThan(Math.max(size.height * 0.1, 75));
      }
      // The end of the page can be scrolled above the player.
      const last = await boxOf(page.locator('.side'));
      expect(last.bottom).toBeLessThan((await boxOf(player)).y);
    }
  });

  it('leads a phone to the account, which is far below a long library', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    const link = page.getByRole('link', { name: english.account });
    expect(await link.isVisible()).toBe(false);
    await page.setViewportSize(PHONE);
    await link.click();
    const account = await boxOf(studio.region(english.account));
    expect(account.y).toBeLessThan(PHONE.height / 2);
  });

  it('leaves a shared track where it is on a phone, because its page is about nothing else', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ isPublic: true });
    const link = await studio.sharedLink();
    await using stranger = await visit({ viewport: PHONE });
    const { page } = new Studio(await stranger.open(link));
    await page.getByRole('button', { name: english.listen }).waitFor();
    const player = await boxOf(page.locator('.player'));
    expect(player.bottom).toBeLessThan((await boxOf(page.locator('.welcome'))).y);
    expect((await boxOf(page.locator('.track'))).height).toBeGreaterThan(40);
  });

  it('keeps the notice off the player', async () => {
    await using studio = await openStudio(visit, { startingBalance: 20 });
    const { page, visitor } = studio;
    for (const prompt of ['Rain', 'Snow', 'Hail']) await studio.generate({ prompt });
    visitor.expectProblem(/status of 402/);
    await studio.order({ seconds: 600 });
    await studio.alertText();
    for (const size of [PHONE, LOW, TABLET, WIDE, ...ZOOMED]) {
      await page.setViewportSize(size);
      for (let top = 0; top < 1_200; top += 100) {
        await page.evaluate((top) => scrollTo(0, top), top);
        const [notice, player] = [await boxOf(page.locator('.notice')), await boxOf(page.locator('.player'))];
        const where = `${size.width} x ${size.height}, ${top} px down`;
        expect([where, notice.bottom <= player.y || player.bottom <= notice.y]).toEqual([where, true]);
        expect([where, notice.y < size.height]).toEqual([where, true]);
      }
    }
  });

  it('leaves no space for a hidden Share, and fits between a phone and a tablet', async () => {
    await using studio = await openStudio(visit);
    const { page, tracks } = studio;
    await studio.generate({ prompt: 'Public', isPublic: true });
    await studio.generate({ prompt: 'Private', isPublic: false });
    const [own, shared] = [tracks.nth(0), tracks.nth(1)];
    await page.setViewportSize({ width: 1280, height: 800 });
    const titles = [await boxOf(own.locator('.title')), await boxOf(shared.locator('.title'))] as const;
    expect(titles[0].width).toBeGreaterThan(titles[1].width + 10);
    for (const width of [480, 560, 640, 767]) {
      await page.setViewportSize({ width, height: 800 });
      const title = await boxOf(shared.locator('.title'));
      expect(title.width).toBeGreaterThan(width / 3);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    }
  });

  it('writes what a person has written in its own direction', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ prompt: 'مطر على السطح' });
    const direction = (element: Locator) => element.evaluate((each) => getComputedStyle(each).direction);
    const [title, what] = ['.player .title', '.activity .title'].map((path) =>
      studio.page.locator(path).first(),
    );
    for (const element of [studio.prompt, studio.tracks.first().locator('.title'), title, what])
      expect(element && (await direction(element))).toBe('rtl');
  });
});
