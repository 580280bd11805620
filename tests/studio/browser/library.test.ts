import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio, studioIn } from './page.ts';

describeInChromium('the library of the studio', (visit) => {
  it('saves a track as the file that the upstream has, and fills in the form for another one like it', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    const prompt = 'Rain: "a/b"';
    await studio.generate({ prompt, seconds: 7 });
    const saving = page.waitForEvent('download');
    await studio.press(english.download, studio.tracks.first());
    const download = await saving;
    expect(download.suggestedFilename()).toBe('Rain a b.wav');
    expect(Bun.file(await download.path()).size).toBe(44 + 7 * 48_000);
    await studio.prompt.fill('Snow');
    await studio.press(english.again, studio.tracks.first());
    expect(await studio.prompt.inputValue()).toBe(prompt);
  });

  it('publishes a track by a link, by which it plays for somebody without cookies until it is unpublished', async () => {
    await using owner = await openStudio(visit, {}, { permissions: ['clipboard-read', 'clipboard-write'] });
    const prompt = 'A slow waltz for two';
    await owner.generate({ prompt });
    const track = owner.tracks.first();
    await owner.button(english.publish, track).evaluate((element: HTMLButtonElement) => {
      element.click();
      element.click();
    });
    await owner.button(english.unpublish, track).waitFor();
    expect(owner.gate.calls.filter((call) => call.startsWith('PATCH '))).toHaveLength(1);
    const link = await owner.sharedLink();
    await owner.shows(english.linkCopied);
    expect(await owner.page.evaluate(() => navigator.clipboard.readText())).toBe(link);

    await using stranger = await visit();
    const studio = studioIn(await stranger.open(link));
    await studio.press(english.listen);
    await studio.playsBeyond(0.1);
    expect(studio.page.url()).toBe(link);
    await studio.shows('By Ada, ');
    expect(await studio.page.getByRole('heading', { level: 2 }).first().textContent()).toBe(prompt);
    expect(await stranger.context.cookies()).toEqual([]);
    expect(await studio.button(english.generate).isVisible()).toBe(false);

    await owner.press(english.unpublish, track);
    // The row has changed under the focus.
    await owner.button(english.publish, track).and(owner.page.locator(':focus')).waitFor();
    expect(await track.getByRole('link').count()).toBe(0);
    stranger.expectProblem(/status of 404/);
    await studio.page.reload();
    await studio.shows(english.sharedGone);
    expect(await studio.page.getByText(prompt).count()).toBe(0);
  });
});
