import { expect, it, setDefaultTimeout } from 'bun:test';
import axe, { type AxeResults, type RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { startDemoWorld } from '../../support/demo-world.ts';
import { alertText, button, generate, openStudio, order, sharedLink } from './page.ts';

declare const window: Window & { readonly axe: { run(options: RunOptions): Promise<AxeResults> } };

/** axe-core reads styles through a style element of its own, which the page's policy refuses. */
const WITH_AXE = { bypassCSP: true };
const SCHEMES = ['light', 'dark'] as const;
const WIDTHS = [360, 1440] as const;

/** What axe finds in the page as it stands, and whether it has to be scrolled sideways: in both schemes and widths. */
async function findings(page: Page): Promise<readonly string[]> {
  const found: string[] = [];
  await page.evaluate(axe.source);
  for (const colorScheme of SCHEMES) {
    for (const width of WIDTHS) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.setViewportSize({ width, height: 900 });
      const where = `${colorScheme}, ${width} px`;
      const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
      for (const { id, impact, nodes } of violations) {
        found.push(`${where}: ${impact} ${id}: ${nodes.map(({ html }) => html).join(' ')}`);
      }
      const pageWidth = await page.evaluate(() => document.documentElement.scrollWidth);
      if (pageWidth > width) found.push(`${where}: is ${pageWidth} px wide`);
    }
  }
  return found;
}

// The checks of axe keep a processor busy for many seconds, and more when others need it too.
setDefaultTimeout(90_000);

describeInChromium('the studio has no accessibility problem', (visit) => {
  it('for a person who is signed out', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit(WITH_AXE);
    const page = await visitor.open(world.studioUrl);
    await button(page, 'Sign in').waitFor();
    expect(await findings(page)).toEqual([]);
  });

  it('for a person who is signed in, with a generated track, and with an error', async () => {
    await using studio = await openStudio(visit, { startingBalance: 10 }, WITH_AXE);
    const { visitor, page } = studio;
    await page.getByText(english.libraryEmpty).waitFor();
    expect(await findings(page)).toEqual([]);
    await generate(page, { prompt: 'Anunusuallylongwordthatnobodywouldeverwrite'.repeat(4), isPublic: true });
    await sharedLink(page);
    expect(await findings(page)).toEqual([]);

    visitor.expectProblem(/status of 402/);
    await order(page, { seconds: 600 });
    await alertText(page);
    expect(await findings(page)).toEqual([]);
  });

  it('for a person who opens a shared track', async () => {
    await using owner = await openStudio(visit, {}, WITH_AXE);
    const { page: studio } = owner;
    await generate(studio, { isPublic: true });
    const link = await sharedLink(studio);
    await using stranger = await visit(WITH_AXE);
    const page = await stranger.open(link);
    await button(page, english.listen).waitFor();
    expect(await findings(page)).toEqual([]);
  });
});
