import { expect, it } from 'bun:test';
import type { Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { button, generate, openStudio, playedBeyond, sharedLink, tracks } from './page.ts';

const PROMPT = 'A slow waltz for two';

/** Publishes the newest track and gives the link that Share shows. */
async function share(page: Page): Promise<string> {
  await button(tracks(page).first(), 'Publish').click();
  return sharedLink(page);
}

describeInChromium('a shared track', (visit) => {
  it('plays for somebody without cookies, by the link that was copied', async () => {
    await using owner = await openStudio(visit, {}, { permissions: ['clipboard-read', 'clipboard-write'] });
    const { world, page: studio } = owner;
    await generate(studio, { prompt: PROMPT });
    const link = await share(studio);
    await studio.getByText(english.linkCopied).waitFor();
    expect(await studio.evaluate(() => navigator.clipboard.readText())).toBe(link);
    expect(new URL(link).origin).toBe(world.studioUrl);

    await using stranger = await visit();
    const page = await stranger.open(link);
    await page.getByText(PROMPT).first().waitFor();
    await button(page, english.listen).click();
    await playedBeyond(page, 0.3);
    expect(page.url()).toBe(link);
    expect(await page.locator('audio').evaluate((audio: HTMLAudioElement) => audio.crossOrigin)).toBe(
      'anonymous',
    );
    expect(await stranger.context.cookies()).toEqual([]);
    expect(await button(page, 'Generate').isVisible()).toBe(false);
  });

  it('has a link to copy by hand where the clipboard is refused', async () => {
    await using owner = await openStudio(visit);
    const { page: studio } = owner;
    await generate(studio);
    await studio.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new DOMException('', 'NotAllowedError'));
    });
    await share(studio);
    await studio.getByText(english.linkShown).waitFor();
  });

  it('is not found by its link after Unpublish', async () => {
    await using owner = await openStudio(visit);
    const { page: studio } = owner;
    await generate(studio, { prompt: PROMPT });
    const link = await share(studio);
    await button(tracks(studio).first(), 'Unpublish').click();
    const publish = button(tracks(studio).first(), 'Publish');
    await publish.waitFor();
    const shownLink = tracks(studio).first().getByRole('link');
    expect(await shownLink.count()).toBe(0);
    await publish.click();
    await button(tracks(studio).first(), 'Unpublish').waitFor();
    expect(await shownLink.count()).toBe(0);
    await button(tracks(studio).first(), 'Unpublish').click();
    await publish.waitFor();

    await using stranger = await visit();
    stranger.expectProblem(/status of 404/);
    const page = await stranger.open(link);
    await page.getByText(english.sharedGone).waitFor();
    await page.getByText(english.sharedGoneText).waitFor();
    expect(await page.getByText(PROMPT).count()).toBe(0);
  });

  it('can be made public before it is generated', async () => {
    await using owner = await openStudio(visit);
    const { page: studio } = owner;
    await generate(studio, { isPublic: true });
    await button(tracks(studio).first(), 'Unpublish').waitFor();
    await button(tracks(studio).first(), 'Share').waitFor();
  });
});
