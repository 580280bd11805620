import { expect, it } from 'bun:test';
import type { Locator } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio } from './page.ts';

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

describeInChromium('the colours of the studio', (visit) => {
  it('leave Generate readable under the mouse, also while an order is sent', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await page.emulateMedia({ reducedMotion: 'reduce' });
    const generate = studio.button(english.generate);
    const readable = async () =>
      contrast(await colourOf(generate, 'color'), await colourOf(generate, 'background-color'));
    await generate.hover();
    expect(await readable()).toBeGreaterThan(4.5);
    const { promise, resolve } = Promise.withResolvers<void>();
    studio.world.gate.replace('POST /v1/music', async (forward) => {
      await promise;
      return forward();
    });
    await studio.order();
    await generate.hover();
    expect(await generate.getAttribute('aria-disabled')).toBe('true');
    expect(await readable()).toBeGreaterThan(4.5);
    resolve();
    await studio.says(english.complete);
  });

  it('tell heard and unheard parts of the waveform and badges from what is around them', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await studio.generate();
    const player = studio.region(english.player);
    const badge = studio.tracks.first().locator('.badge');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const card = await colourOf(player, 'background-color');
      const [unheard, heard] = [
        await colourOf(player, '--waveform'),
        await colourOf(player, '--waveform-heard'),
      ];
      const row = await colourOf(studio.tracks.first(), 'background-color');
      expect(contrast(unheard, card)).toBeGreaterThan(3);
      expect(contrast(unheard, heard)).toBeGreaterThan(3);
      expect(contrast(await colourOf(badge, 'color'), row)).toBeGreaterThan(4.5);
      expect(contrast(await colourOf(badge, 'border-top-color'), row)).toBeGreaterThan(3);
    }
  });

  it('are those of the person where they are forced, and a line that must not move shows the share', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.3);
    await studio.shows('60%');
    const player = studio.region(english.player);
    await page.emulateMedia({ forcedColors: 'active', colorScheme: 'dark', reducedMotion: 'reduce' });
    const canvas = await colourOf(player, 'background-color');
    expect(await colourOf(player, '--waveform-heard')).toEqual(await colourOf(player, 'color'));
    expect(contrast(await colourOf(player, '--waveform'), canvas)).toBeGreaterThan(3);
    expect(await studio.tracks.first().evaluate((row) => getComputedStyle(row).outlineStyle)).toBe('solid');
    const line = await page.locator('.progress-line').evaluate((element) => {
      const { width, animationName } = getComputedStyle(element, '::before');
      return { share: Number.parseFloat(width) / element.clientWidth, animationName };
    });
    expect(line.animationName).toBe('none');
    expect(line.share).toBeCloseTo(0.6, 1);
    audio.release();
    await studio.says(english.complete);
  });
});
