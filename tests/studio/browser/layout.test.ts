import { expect, it } from 'bun:test';
import type { Locator } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio, studioIn } from './page.ts';

const PHONE = { width: 390, height: 844 };
const WIDE = { width: 1280, height: 800 };
/** The first two are a window of 1280 x 720, as the page sees it with a zoom of 200 and 400 %. */
const SMALL = [{ width: 640, height: 360 }, { width: 320, height: 180 }, PHONE] as const;
const OTHERS = [{ width: 1280, height: 500 }, { width: 800, height: 700 }, WIDE] as const;

async function boxOf(element: Locator) {
  const box = await element.boundingBox();
  if (!box) throw new Error(`${element} is not shown`);
  return { ...box, bottom: box.y + box.height };
}

describeInChromium('the layout of the studio', (visit) => {
  it('keeps the player in view in a small or zoomed window, off the notice, and leads a phone to the account', async () => {
    await using studio = await openStudio(visit, { startingBalance: 20 });
    const { page, visitor, player } = studio;
    const notice = page.locator('.notice');
    const scroll = (top: number) => page.evaluate((top) => scrollTo(0, top), top);
    const link = page.getByRole('link', { name: english.account });
    expect(await link.isVisible()).toBe(false);
    for (const prompt of ['Rain', 'Snow', 'Hail']) await studio.generate({ prompt });
    for (const size of SMALL) {
      await page.setViewportSize(size);
      for (const end of [0, 100_000]) {
        await scroll(end);
        const { height, bottom } = await boxOf(player);
        expect(Math.round(bottom)).toBe(size.height);
        expect(height).toBeLessThan(Math.max(size.height * 0.1, 75));
      }
      // The end of the page can be scrolled above the player.
      expect((await boxOf(page.locator('.side'))).bottom).toBeLessThan((await boxOf(player)).y);
    }
    await link.click();
    expect((await boxOf(studio.region(english.account))).y).toBeLessThan(PHONE.height / 2);

    visitor.expectProblem(/status of 402/);
    await studio.order({ seconds: 600 });
    await studio.warns(english.noCredits);
    for (const size of [...SMALL, ...OTHERS]) {
      await page.setViewportSize(size);
      for (let top = 0; top < 1_200; top += 100) {
        await scroll(top);
        const [above, below] = [await boxOf(notice), await boxOf(player)];
        const isApart = above.bottom <= below.y || below.bottom <= above.y;
        const where = `${size.width} x ${size.height}, ${top} px down`;
        expect([where, isApart, above.y < size.height]).toEqual([where, true, true]);
      }
    }
  });

  it('leaves no space for a hidden Share, fits any window, and writes a title in its own direction', async () => {
    await using studio = await openStudio(visit);
    const { page, tracks } = studio;
    await studio.generate({ prompt: 'Public', isPublic: true });
    const link = await studio.sharedLink();
    await studio.generate({ prompt: 'مطر على السطح', isPublic: false });
    const [own, shared] = [tracks.nth(0).locator('.title'), tracks.nth(1).locator('.title')];
    await page.setViewportSize(WIDE);
    expect((await boxOf(own)).width).toBeGreaterThan((await boxOf(shared)).width + 10);
    for (const width of [480, 560, 640, 767]) {
      await page.setViewportSize({ width, height: 800 });
      expect((await boxOf(shared)).width).toBeGreaterThan(width / 3);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    }
    const titles = [page.locator('.player .title'), page.locator('.activity .title').first()];
    await studio.press(english.play, tracks.first());
    for (const element of [studio.prompt, own, ...titles])
      expect(await element.evaluate((each) => getComputedStyle(each).direction)).toBe('rtl');

    // Whoever follows a link wants to listen before anything else.
    await page.setViewportSize(WIDE);
    await page.goto(link);
    await studio.isLoaded();
    await studio.player.getByText('Public').waitFor();
    const form = await boxOf(studio.region(english.newTrack));
    expect((await boxOf(studio.player)).bottom).toBeLessThanOrEqual(form.y);

    // The page of a shared track is about nothing else, so it stays where it is on a phone.
    await using stranger = await visit({ viewport: PHONE });
    const phone = studioIn(await stranger.open(link));
    await phone.button(english.listen).waitFor();
    const player = await boxOf(phone.page.locator('.player'));
    expect(player.bottom).toBeLessThan((await boxOf(phone.page.locator('.welcome'))).y);
    expect((await boxOf(phone.page.locator('.track'))).height).toBeGreaterThan(40);
  });
});
