import { expect, it, setDefaultTimeout } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import type { Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { startDemoWorld } from '../../support/demo-world.ts';
import { button, generate, signIn, tracks } from './page.ts';

/** For a look at them. UPDATE_SCREENSHOTS=1 also replaces those of the README. */
const FOLDER = `${tmpdir()}/music-studio-screenshots`;
const README_FOLDER = new URL('../screenshots', import.meta.url).pathname;
const MOST_BYTES = 200_000;

const VIEWS = [
  { colorScheme: 'light', width: 1440, height: 900 },
  { colorScheme: 'dark', width: 1440, height: 900 },
  { colorScheme: 'light', width: 360, height: 740 },
  { colorScheme: 'dark', width: 360, height: 740 },
] as const;

const PROMPTS = [
  'A brass band that marches away',
  'Morning light on the harbour, accordion and gulls',
  'A calm evening by the lake, with a slow piano',
] as const;

/** From 0, black, to 1, white: what a person sees of it on the whole. */
async function brightness(picture: Buffer, page: Page): Promise<number> {
  return page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    const canvas = new OffscreenCanvas(1, 1).getContext('2d');
    canvas?.drawImage(bitmap, 0, 0, 1, 1);
    const [red = 0, green = 0, blue = 0] = canvas?.getImageData(0, 0, 1, 1).data ?? [];
    return (red + green + blue) / 3 / 255;
  }, picture.toString('base64'));
}

// Full-page pictures keep a processor busy for many seconds, and more when others need it too.
setDefaultTimeout(90_000);

describeInChromium('the studio on a picture', (visit) => {
  it('is light or dark as the person prefers, and small', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await visitor.open(world.studioUrl);
    await signIn(page, 'Ada Lovelace');
    for (const [index, prompt] of PROMPTS.entries())
      await generate(page, { prompt, seconds: 40 + 20 * index, isPublic: index === 1 });
    // The waveform shows a part as heard, and nothing moves.
    await button(page, english.pause).click();
    await page.getByRole('slider', { name: english.position }).click();
    await button(tracks(page).first(), english.play).waitFor();
    await mkdir(FOLDER, { recursive: true });
    for (const { colorScheme, width, height } of VIEWS) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const picture = await page.screenshot({ fullPage: true, animations: 'disabled' });
      await Bun.write(`${FOLDER}/${colorScheme}-${width}.png`, picture);
      const light = await brightness(picture, page);
      if (colorScheme === 'light') expect(light).toBeGreaterThan(0.7);
      else expect(light).toBeLessThan(0.3);
      if (width !== 1440) continue;
      expect(picture.length).toBeLessThan(MOST_BYTES);
      if (Bun.env['UPDATE_SCREENSHOTS'] === '1')
        await Bun.write(`${README_FOLDER}/${colorScheme}.png`, picture);
    }
  });
});
