import { expect, it } from 'bun:test';
import axe, { type AxeResults, type RunOptions } from 'axe-core';
import type { Locator, Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio, studioIn } from './page.ts';

declare const window: Window & { readonly axe: { run(options: RunOptions): Promise<AxeResults> } };

/** axe-core reads styles through a style element of its own, which the page's policy refuses. */
const WITH_AXE = { bypassCSP: true };

const SCHEMES = ['light', 'dark'] as const;
/** The last one is a window of 1280 x 1024, as the page sees it with a zoom of 400 %. */
const VIEWS = [
  { colorScheme: 'light', width: 1280, height: 800 },
  { colorScheme: 'dark', width: 390, height: 844 },
  { colorScheme: 'light', width: 320, height: 256 },
] as const;
const ALL_VIEWS = [
  ...VIEWS,
  { colorScheme: 'dark', width: 1280, height: 800 },
  { colorScheme: 'light', width: 390, height: 844 },
  { colorScheme: 'dark', width: 1440, height: 900 },
  { colorScheme: 'light', width: 360, height: 740 },
] as const;

const LIBRARY = 'GET /v1/music/creations';
const LONG_LIBRARY = Array.from({ length: 40 }, (_, index) => ({
  ...{ id: `track-${index}`, music_length_ms: 30_000, created_at: new Date(index).toISOString() },
  prompt: `${index % 10 === 0 ? 'مطر على السطح' : 'Rain on a roof'} ${index}`,
  is_public: index % 2 === 0,
  status: index === 0 ? 'generating' : 'ready',
}));

/** What axe finds in the page as it stands, without animations, and whether it has to be scrolled sideways. */
async function findings(page: Page, views: readonly (typeof ALL_VIEWS)[number][] = VIEWS): Promise<string[]> {
  const found: string[] = [];
  await page.evaluate(axe.source);
  for (const { colorScheme, width, height } of views) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const where = `${colorScheme}, ${width} px`;
    const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
    for (const { id, impact, nodes } of violations)
      found.push(`${where}: ${impact} ${id}: ${nodes.map(({ html }) => html).join(' ')}`);
    // The longer texts come first, so that the page is in English after them.
    for (const language of ['sw', 'en']) {
      await page.locator('[data-part=language]').selectOption(language);
      const pageWidth = await page.evaluate(() => document.documentElement.scrollWidth);
      if (pageWidth > width) found.push(`${where}, ${language}: is ${pageWidth} px wide`);
    }
  }
  return found;
}

type Colour = readonly [red: number, green: number, blue: number];

/** What the browser paints for a property of an element, when it is a colour. */
function colourOf(element: Locator, property: string): Promise<Colour> {
  return element.evaluate((element, property) => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d');
    if (!canvas) throw new Error('no canvas');
    canvas.fillStyle = getComputedStyle(element).getPropertyValue(property);
    canvas.fillRect(0, 0, 1, 1);
    const [red = 0, green = 0, blue = 0] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue];
  }, property);
}

/** @see WCAG 2.2, relative luminance and contrast ratio */
function contrast(one: Colour, other: Colour): number {
  const [darker = 0, lighter = 0] = [one, other].map(luminance).sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(colour: Colour): number {
  const [red = 0, green = 0, blue = 0] = colour
    .map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

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
    await studio.press(english.rename, studio.tracks.first());
    expect(await findings(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await studio.region(english.gatewayDid).getByRole('heading').click();
    visitor.expectProblem(/status of 402/);
    await studio.order({ seconds: 600 });
    await studio.warns(english.noCredits);
    expect(await findings(page, ALL_VIEWS)).toEqual([]);
  });

  it('for a person who searches a long library, or whose library cannot be loaded', async () => {
    await using studio = await openStudio(visit, {}, WITH_AXE);
    const { visitor, page, gate } = studio;
    gate.replace(LIBRARY, () => Response.json({ data: LONG_LIBRARY }));
    await studio.reload();
    await page.getByRole('searchbox', { name: english.search }).fill('مطر');
    await studio.says('4 of 40 tracks');
    expect(await findings(page)).toEqual([]);
    visitor.expectProblem(/status of 500/);
    gate.replace(LIBRARY, () => new Response('{}', { status: 500 }));
    await page.reload();
    await studio.shows(english.libraryFailed);
    expect(await findings(page)).toEqual([]);
  });

  it('for a person who is signed out, or opens a shared track, which may be gone', async () => {
    await using owner = await openStudio(visit);
    await owner.generate({ isPublic: true });
    await using stranger = await visit(WITH_AXE);
    stranger.expectProblem(/status of 404/);
    const studio = studioIn(await stranger.open(await owner.sharedLink()));
    await studio.button(english.listen).waitFor();
    expect(await findings(studio.page)).toEqual([]);
    await studio.page.goto(`${owner.world.studioUrl}/?listen=nothing`);
    await studio.shows(english.sharedGone);
    await studio.button(english.signIn).waitFor();
    expect(await findings(studio.page)).toEqual([]);
  });
});

describeInChromium('the colours of the studio', (visit) => {
  it('leave Generate and the waveform readable, and are those of the person where they are forced', async () => {
    await using studio = await openStudio(visit);
    const { page, gate, player } = studio;
    const generate = studio.button(english.generate);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    const expectReadable = async () => {
      await generate.hover();
      const ground = await colourOf(generate, 'background-color');
      expect(contrast(await colourOf(generate, 'color'), ground)).toBeGreaterThan(4.5);
    };
    await expectReadable();
    const order = gate.hold('POST /v1/music');
    await studio.order();
    await page.locator('button[aria-disabled=true]').filter({ hasText: english.generate }).waitFor();
    await expectReadable();
    order.release();
    await studio.says(english.complete);
    const badge = studio.tracks.first().locator('.badge');
    const expectDistinct = async (element: Locator, property: string, ground: Colour) =>
      expect(contrast(await colourOf(element, property), ground)).toBeGreaterThan(3);
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      const light = luminance(await colourOf(page.locator('body'), 'background-color'));
      expect(light > 0.5).toBe(colorScheme === 'light');
      await expectDistinct(player, '--waveform', await colourOf(player, 'background-color'));
      await expectDistinct(player, '--waveform', await colourOf(player, '--waveform-heard'));
      const row = await colourOf(studio.tracks.first(), 'background-color');
      await expectDistinct(badge, 'border-top-color', row);
    }

    const audio = await studio.orderHeld({ prompt: 'Snow' });
    await studio.shows('60%');
    await page.emulateMedia({ forcedColors: 'active', colorScheme: 'dark', reducedMotion: 'reduce' });
    expect(await colourOf(player, '--waveform-heard')).toEqual(await colourOf(player, 'color'));
    await expectDistinct(player, '--waveform', await colourOf(player, 'background-color'));
    const open = page.locator('[aria-current=true]');
    expect(await open.evaluate((row) => getComputedStyle(row).outlineStyle)).toBe('solid');
    // A line that must not move shows the share.
    const line = page.locator('.progress-line').last();
    const share = await line.evaluate((element) => {
      const { width, animationName } = getComputedStyle(element, '::before');
      return { share: Number.parseFloat(width) / element.clientWidth, animationName };
    });
    expect(share).toEqual({ share: expect.closeTo(0.6, 1), animationName: 'none' });
    audio.release();
    await studio.says(english.complete);
  });
});

if (Bun.env['UPDATE_SCREENSHOTS'] === '1')
  describeInChromium('the studio on a picture of the README', (visit) => {
    it('is light or dark, and small', async () => {
      await using studio = await openStudio(visit, {}, { viewport: { width: 1440, height: 900 } });
      const { page } = studio;
      for (const order of [
        { prompt: 'A brass band that marches away', seconds: 40 },
        { prompt: 'Morning light on the harbour, accordion and gulls', seconds: 60, isPublic: true },
        { prompt: 'A calm evening by the lake, with a slow piano', seconds: 80, isPublic: false },
      ]) {
        await studio.generate(order);
        // Nothing moves, and a track that plays would keep the next one from the player.
        await studio.press(english.pause);
      }
      // The waveform shows a part as heard.
      await studio.slider.click();
      await studio.button(english.play, studio.tracks.first()).waitFor();
      await studio.lines.first().waitFor({ state: 'detached' });
      for (const colorScheme of SCHEMES) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        const picture = await page.screenshot({ fullPage: true, animations: 'disabled' });
        expect(picture.length).toBeLessThan(200_000);
        await Bun.write(new URL(`../screenshots/${colorScheme}.png`, import.meta.url).pathname, picture);
      }
    }, 180_000);
  });
