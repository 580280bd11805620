import { expect, it } from 'bun:test';
import axe, { type AxeResults, type RunOptions } from 'axe-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium, ROOMY, visit } from '../chromium.ts';
import { A_MINOR, recordTune } from '../recording.ts';
import { openStudio, type Studio, studioIn } from './page.ts';

declare const window: Window & { readonly axe: { run(options: RunOptions): Promise<AxeResults> } };

/** axe-core reads styles through a style element of its own, which the page's policy refuses. */
const WITH_AXE = { bypassCSP: true };
const VIEWS = [
  { colorScheme: 'light', width: 1280, height: 800 },
  { colorScheme: 'dark', width: 390, height: 844 },
] as const;

/** What axe finds in the page as it stands, without animations, and whether it has to be scrolled sideways. */
async function findings({ page }: Studio): Promise<string[]> {
  const found: string[] = [];
  await page.evaluate(axe.source);
  for (const { colorScheme, width, height } of VIEWS) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    // What a small screen folds away.
    await page.locator('details.options').evaluate((options) => options.setAttribute('open', ''));
    const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
    for (const { id, nodes } of violations)
      found.push(`${width} px: ${id}: ${nodes.map(({ html }) => html).join(' ')}`);
    const pageWidth = await page.evaluate(() => document.documentElement.scrollWidth);
    if (pageWidth > width) found.push(`${width} px: is ${pageWidth} px wide`);
  }
  await page.setViewportSize(ROOMY);
  return found;
}

describeInChromium('a small screen', () => {
  const sizes = VIEWS.map(({ width, height }) => ({ width, height }));
  it.each(sizes)(
    'of $width x $height shows the newest track at once, and a length that is wrong',
    async (size) => {
      await using studio = await openStudio();
      const { page, tracks } = studio;
      await page.setViewportSize(size);
      await studio.prompt.fill('Rain on a tin roof');
      await studio.press(english.generate);
      await studio.says(english.complete);
      await studio.lines.first().waitFor({ state: 'detached' });
      await page.evaluate(() => scrollTo(0, 0));
      const isUncovered = (title: Element) => {
        const { left, bottom } = title.getBoundingClientRect();
        return title.contains(document.elementFromPoint(left + 1, bottom - 1));
      };
      expect(await tracks.first().getByText('Rain on a tin roof').evaluate(isUncovered)).toBe(true);
      expect(await studio.length.isVisible()).toBe(false);
      // Neither role nor name has what is folded away.
      await page.locator('#length').evaluate((field: HTMLInputElement) => {
        field.value = '2';
      });
      await studio.press(english.generate);
      await studio.length.and(page.locator(':focus')).waitFor();
    },
  );
});

describeInChromium('the studio has no accessibility problem', () => {
  it('for a person who has not signed in, and listens', async () => {
    await using studio = await openStudio({ isSignedIn: false }, WITH_AXE);
    await studio.press(english.play, studio.pieces.first());
    await studio.playsBeyond(0.3);
    expect(await findings(studio)).toEqual([]);
  });

  it('for a person who makes a first track, shares and renames it, and gets an error', async () => {
    await using studio = await openStudio({ startingBalance: 50 }, WITH_AXE);
    const { visitor, page, gate } = studio;
    const prompt = 'Anunusuallylongwordthatnobodywouldeverwrite'.repeat(4);
    const audio = await studio.orderHeld({ prompt, isPublic: true });
    await studio.playsBeyond(0.3);
    expect(await findings(studio)).toEqual([]);
    audio.release();
    await studio.says(english.complete);
    await using stranger = await visit(WITH_AXE);
    const shared = studioIn(await stranger.open(await studio.sharedLink()));
    await shared.button(english.listen).waitFor();
    expect(await findings(shared)).toEqual([]);
    await studio.press(english.rename, studio.tracks.first());
    expect(await findings(studio)).toEqual([]);
    await page.keyboard.press('Escape');
    await studio.region(english.gatewayDid).getByRole('heading').click();
    visitor.expectProblem(/status of 402/);
    const refusing = gate.replace('POST /v1/music', () => Response.json({}, { status: 402 }));
    await studio.order({ prompt });
    await studio.warns(`“${prompt}”`);
    await studio.warns(english.noCredits);
    refusing.giveBack();
    await studio.order({ seconds: 600 });
    await studio.length.and(page.locator(':focus')).waitFor();
    expect(gate.idempotencyKeys).toHaveLength(2);
    await studio.press(english.delete, studio.tracks.first());
    await studio.button(english.undo).waitFor();
    expect(await findings(studio)).toEqual([]);
  });

  it('for a person who looks at the keys, and is asked whether an order is meant', async () => {
    await using studio = await openStudio({}, WITH_AXE);
    const { visitor, page, gate } = studio;
    await studio.press(english.keys);
    await studio.shows(english.keyMute);
    expect(await findings(studio)).toEqual([]);
    await page.keyboard.press('Escape');
    visitor.expectProblem(/status of 503/);
    gate.replace('POST /v1/music', () => new Response(null, { status: 503 }));
    await studio.order();
    await studio.says(english.orderingAgain);
    await studio.order({ seconds: 4 });
    await studio.shows(english.orderAgain);
    expect(await findings(studio)).toEqual([]);
  });

  it('for a person who sends a recording, has one refused, and chooses among those that are there', async () => {
    await using studio = await openStudio({}, WITH_AXE);
    const { visitor, gate, page } = studio;
    const send = async (name: string, buffer: Buffer) =>
      page.locator('input[type=file]').setInputFiles({ name, mimeType: 'audio/wav', buffer });
    const adding = gate.hold('POST /v1/music/references');
    const name = `${'averylongnameofafile'.repeat(5)}.wav`;
    await send(name, recordTune({ notes: A_MINOR, bpm: 90 }));
    await adding.arrived;
    expect(await findings(studio)).toEqual([]);
    adding.release();
    await studio.says(english.recordingAdded.replace('{name}', name));
    await page.getByRole('radio', { name, checked: true }).waitFor();
    visitor.expectProblem(/status of 422/);
    await send('song.mp3', Buffer.from('ID3'));
    await studio.says(english.otherFile);
    expect(await findings(studio)).toEqual([]);
  });
});
