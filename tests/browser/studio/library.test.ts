import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { button, generate, openStudio, region, said, tracks } from './page.ts';

describeInChromium('the library of the studio', (visit) => {
  it('shows a new track on top while it is made, marks it as playing, and keeps the focus', async () => {
    await using studio = await openStudio(visit);
    const { world, page } = studio;
    for (const prompt of ['Rain', 'Snow']) await generate(page, { prompt });
    const publish = button(tracks(page).nth(1), english.publish);
    const audio = world.gate.holdAudio(1_000);
    const list = world.gate.replace('GET /v1/music/creations', async (forward) => {
      const text = await (await forward()).text();
      // The sandbox is done at once; the newest track comes first.
      return new Response(text.replace('"ready"', '"generating"'));
    });
    await page.getByRole('textbox', { name: 'Prompt' }).fill('Hail');
    await publish.focus();
    // The keyboard's focus stays where it is, as it would not with a press of Generate.
    await page.locator('form').evaluate((form: HTMLFormElement) => form.requestSubmit());
    const newest = tracks(page).first();
    await newest.filter({ hasText: english.generating }).waitFor();
    const titles = await tracks(page).locator('[data-part=title]').allTextContents();
    expect(titles).toEqual(['Hail', 'Snow', 'Rain']);
    expect(await button(newest, english.play).isVisible()).toBe(false);
    const current = () =>
      tracks(page).evaluateAll((items) => items.map((item) => item.getAttribute('aria-current')));
    expect(await current()).toEqual(['true', 'false', 'false']);
    const focused = () =>
      tracks(page)
        .nth(2)
        .evaluate((item) => item.contains(document.activeElement));
    expect(await focused()).toBe(true);

    list.giveBack();
    audio.release();
    await said(page, english.complete);
    await newest.filter({ hasText: english.private }).waitFor();
    await button(newest, english.play).waitFor();
    expect(await focused()).toBe(true);
    await button(tracks(page).nth(1), english.play).click();
    await page.waitForFunction(() => document.querySelectorAll('li')[1]?.ariaCurrent === 'true');
    expect(await current()).toEqual(['false', 'true', 'false']);
  });

  it('changes the visibility of a track once for two presses, and describes its buttons by its title', async () => {
    await using studio = await openStudio(visit);
    const { world, page } = studio;
    await generate(page, { prompt: 'Rain' });
    const track = tracks(page).first();
    expect(await button(track, english.share).isVisible()).toBe(false);
    const described = await track.evaluate((item) =>
      [...item.querySelectorAll('button')].map(
        (each) => document.getElementById(each.getAttribute('aria-describedby') ?? '')?.textContent,
      ),
    );
    expect(described).toEqual(['Rain', 'Rain', 'Rain']);
    await button(track, english.publish).evaluate((element: HTMLButtonElement) => {
      element.click();
      element.click();
    });
    await button(track, english.unpublish).waitFor();
    expect(world.gate.calls.filter((call) => call.startsWith('PATCH '))).toHaveLength(1);
    await region(page, english.account).getByText(english.activityVisibility).waitFor();
    await button(track, english.unpublish).click();
    await button(track, english.publish).waitFor();
    expect(world.gate.calls.filter((call) => call.startsWith('PATCH '))).toHaveLength(2);
  });

  it('is empty for the next person after a sign-out', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    await generate(page);
    await button(page, english.signOut).click();
    await button(page, english.signIn).waitFor();
    expect(await page.locator('[data-part=list] > li').count()).toBe(0);
  });
});
