import { expect, it, setDefaultTimeout } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import axe, { type AxeResults, type RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, Studio } from './page.ts';

declare const window: Window & { readonly axe: { run(options: RunOptions): Promise<AxeResults> } };

/** axe-core reads styles through a style element of its own, which the page's policy refuses. */
const WITH_AXE = { bypassCSP: true };

/** For a look at them. UPDATE_SCREENSHOTS=1 also replaces those of the README. */
const FOLDER = `${tmpdir()}/music-studio-screenshots`;
const README_FOLDER = new URL('../screenshots', import.meta.url).pathname;
const MOST_BYTES = 200_000;

const VIEWS = [
  { colorScheme: 'light', width: 1440, height: 900 },
  { colorScheme: 'dark', width: 1440, height: 900 },
  { colorScheme: 'light', width: 360, height: 740 },
  { colorScheme: 'dark', width: 360, height: 740 },
  // A window of 1280 x 1024, as the page sees it with a zoom of 400 %.
  { colorScheme: 'light', width: 320, height: 256 },
] as const;

/** The longer texts come first, so that the page is in English after them. */
const LANGUAGES = ['sw', 'en'] as const;

const PROMPTS = [
  'A brass band that marches away',
  'Morning light on the harbour, accordion and gulls',
  'A calm evening by the lake, with a slow piano',
] as const;

const LIBRARY = 'GET /v1/music/creations';
const LONG_LIBRARY = Array.from({ length: 40 }, (_, index) => ({
  ...{ id: `track-${index}`, music_length_ms: 30_000, created_at: new Date(index).toISOString() },
  prompt: `${index % 10 === 0 ? 'مطر على السطح' : 'Rain on a roof'} ${index}`,
  is_public: index % 2 === 0,
  status: index === 0 ? 'generating' : 'ready',
}));

/** Shows the page in each view, without animations. */
async function inEachView(page: Page, look: (view: (typeof VIEWS)[number]) => Promise<void>): Promise<void> {
  for (const view of VIEWS) {
    const { colorScheme, width, height } = view;
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await look(view);
  }
}

/** What axe finds in the page as it stands, and whether it has to be scrolled sideways. */
async function findings(page: Page): Promise<readonly string[]> {
  const found: string[] = [];
  await page.evaluate(axe.source);
  await inEachView(page, async ({ colorScheme, width }) => {
    const where = `${colorScheme}, ${width} px`;
    const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
    for (const { id, impact, nodes } of violations) {
      found.push(`${where}: ${impact} ${id}: ${nodes.map(({ html }) => html).join(' ')}`);
    }
    for (const language of LANGUAGES) {
      await page.locator('[data-part=language]').selectOption(language);
      const pageWidth = await page.evaluate(() => document.documentElement.scrollWidth);
      if (pageWidth > width) found.push(`${where}, ${language}: is ${pageWidth} px wide`);
    }
  });
  return found;
}

/** From 0, black, to 1, white: what a person sees of it on the whole. */
async function brightness(picture: Buffer, page: Page): Promise<number> {
  return page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    // A picture that is drawn as one pixel is only sampled, and a sample may hit a line.
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
    canvas?.drawImage(bitmap, 0, 0);
    const { data = [] } = canvas?.getImageData(0, 0, bitmap.width, bitmap.height) ?? {};
    let sum = 0;
    for (let at = 0; at < data.length; at += 4) {
      const [red = 0, green = 0, blue = 0] = data.slice(at, at + 3);
      sum += (red + green + blue) / 3 / 255;
    }
    return sum / (data.length / 4);
  }, picture.toString('base64'));
}

// Pictures and the checks of axe keep a processor busy for many seconds, and more when others need it too.
setDefaultTimeout(180_000);

describeInChromium('the studio has no accessibility problem', (visit) => {
  it('for a person who makes a first track, and gets an error', async () => {
    await using studio = await openStudio(visit, { startingBalance: 20 }, WITH_AXE);
    const { visitor, page } = studio;
    await studio.shows(english.libraryEmpty);
    expect(await findings(page)).toEqual([]);
    const prompt = 'Anunusuallylongwordthatnobodywouldeverwrite'.repeat(4);
    const audio = await studio.orderHeld({ prompt, isPublic: true });
    await studio.playsBeyond(0.3);
    expect(await findings(page)).toEqual([]);
    audio.release();
    await studio.says(english.complete);
    await studio.sharedLink();
    await studio.openGatewayPanel();
    visitor.expectProblem(/status of 402/);
    await studio.order({ seconds: 600 });
    await studio.alertText();
    expect(await findings(page)).toEqual([]);
  });

  it('for a person who searches a long library', async () => {
    await using studio = await openStudio(visit, {}, WITH_AXE);
    const { page, world } = studio;
    world.gate.replace(LIBRARY, () => Response.json({ data: LONG_LIBRARY }));
    await page.reload();
    await studio.isLoaded();
    await page.getByRole('searchbox', { name: english.search }).fill('مطر');
    await studio.says('4 of 40 tracks');
    expect(await findings(page)).toEqual([]);
  });

  it('for a person whose library cannot be loaded', async () => {
    await using studio = await openStudio(visit, {}, WITH_AXE);
    const { visitor, page, world } = studio;
    visitor.expectProblem(/status of 500/);
    world.gate.replace(LIBRARY, () => new Response('{}', { status: 500 }));
    await page.reload();
    await studio.shows(english.libraryFailed);
    expect(await findings(page)).toEqual([]);
  });

  it('for a person who is signed out, or opens a shared track, which may be gone', async () => {
    await using owner = await openStudio(visit);
    await owner.generate({ isPublic: true });
    const link = await owner.sharedLink();
    await using stranger = await visit(WITH_AXE);
    const studio = new Studio(await stranger.open(link));
    const { page } = studio;
    await studio.button(english.listen).waitFor();
    expect(await findings(page)).toEqual([]);
    await page.goto(owner.world.studioUrl);
    await studio.button(english.signIn).waitFor();
    expect(await findings(page)).toEqual([]);
    await owner.press(english.unpublish, owner.tracks.first());
    await owner.button(english.publish, owner.tracks.first()).waitFor();
    stranger.expectProblem(/status of 404/);
    await page.goto(link);
    await studio.shows(english.sharedGone);
    expect(await findings(page)).toEqual([]);
  });
});

describeInChromium('the studio on a picture', (visit) => {
  it('is light or dark as the person prefers, and small', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { page } = studio;
    await studio.signIn('Ada Lovelace');
    for (const [index, prompt] of PROMPTS.entries()) {
      await studio.generate({ prompt, seconds: 40 + 20 * index, isPublic: index === 1 });
      // Nothing moves, and a track that plays would keep the next one from the player.
      await studio.press(english.pause);
    }
    // The waveform shows a part as heard.
    await studio.slider.click();
    await studio.button(english.play, studio.tracks.first()).waitFor();
    await mkdir(FOLDER, { recursive: true });
    await inEachView(page, async ({ colorScheme, width }) => {
      const picture = await page.screenshot({ fullPage: true, animations: 'disabled' });
      await Bun.write(`${FOLDER}/${colorScheme}-${width}.png`, picture);
      const light = await brightness(picture, page);
      if (colorScheme === 'light') expect(light).toBeGreaterThan(0.7);
      else expect(light).toBeLessThan(0.3);
      if (width !== 1440) return;
      expect(picture.length).toBeLessThan(MOST_BYTES);
      if (Bun.env['UPDATE_SCREENSHOTS'] === '1')
        await Bun.write(`${README_FOLDER}/${colorScheme}.png`, picture);
    });
  });
});
