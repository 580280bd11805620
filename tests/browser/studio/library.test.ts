import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, Studio } from './page.ts';

const PROMPT = 'A slow waltz for two';

describeInChromium('the library of the studio', (visit) => {
  it('shows a new track on top while it is made, marks it as playing, and keeps the focus', async () => {
    await using studio = await openStudio(visit);
    const { world, page, tracks } = studio;
    for (const prompt of ['Rain', 'Snow']) await studio.generate({ prompt });
    await studio.playsToEnd();
    const audio = world.gate.holdAudio(1_000);
    const list = world.gate.replace('GET /v1/music/creations', async (forward) => {
      const text = await (await forward()).text();
      // The sandbox is done at once; the newest track comes first.
      return new Response(text.replace('"ready"', '"generating"'));
    });
    await studio.prompt.fill('Hail');
    await studio.button(english.publish, tracks.nth(1)).focus();
    // The keyboard's focus stays where it is, as it would not with a press of Generate.
    await page.locator('form').evaluate((form: HTMLFormElement) => form.requestSubmit());
    const newest = tracks.first();
    await newest.filter({ hasText: english.generating }).waitFor();
    const titles = await tracks.locator('[data-part=title]').allTextContents();
    expect(titles).toEqual(['Hail', 'Snow', 'Rain']);
    const current = () => tracks.evaluateAll((items) => items.map((item) => item.ariaCurrent));
    expect(await current()).toEqual(['true', 'false', 'false']);
    const hasFocus = () => tracks.nth(2).evaluate((item) => item.contains(document.activeElement));
    expect(await hasFocus()).toBe(true);

    list.giveBack();
    audio.release();
    await studio.says(english.complete);
    await newest.filter({ hasText: english.private }).waitFor();
    await studio.button(english.play, newest).waitFor();
    expect(await hasFocus()).toBe(true);
    await studio.press(english.play, tracks.nth(1));
    await page.waitForFunction(
      () => document.querySelectorAll('[data-part=list] > li')[1]?.ariaCurrent === 'true',
    );
    expect(await current()).toEqual(['false', 'true', 'false']);

    await studio.press(english.signOut);
    await studio.button(english.signIn).waitFor();
    expect(await page.locator('[data-part=list] > li').count()).toBe(0);
  });

  it('changes the visibility of a track once for two presses, and describes its buttons by its title', async () => {
    await using studio = await openStudio(visit);
    const { gate } = studio.world;
    await studio.generate({ prompt: 'Rain' });
    const track = studio.tracks.first();
    expect(await studio.button(english.share, track).isVisible()).toBe(false);
    const described = await track.evaluate((item) =>
      [...item.querySelectorAll('button')].map(
        (each) => document.getElementById(each.getAttribute('aria-describedby') ?? '')?.textContent,
      ),
    );
    expect(described).toEqual(Array(5).fill('Rain'));
    await studio.button(english.publish, track).evaluate((element: HTMLButtonElement) => {
      element.click();
      element.click();
    });
    await studio.button(english.unpublish, track).waitFor();
    expect(gate.calls.filter((call) => call.startsWith('PATCH '))).toHaveLength(1);
    await studio.region(english.account).getByText(english.activityVisibility).waitFor();

    // The clipboard is refused, so the link is there to be copied by hand.
    await studio.page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new DOMException('', 'NotAllowedError'));
    });
    await studio.sharedLink();
    await studio.shows(english.linkShown);
  });
});

describeInChromium('a library that cannot be loaded', (visit) => {
  it('says so in its place, and is shown as soon as it can', async () => {
    await using studio = await openStudio(visit);
    const { page, world, visitor } = studio;
    await studio.generate({ prompt: 'Rain' });
    visitor.expectProblem(/status of 500/);
    const list = world.gate.replace('GET /v1/music/creations', () => new Response('{}', { status: 500 }));
    await page.reload();
    await studio.shows(english.libraryFailed);
    await studio.hides(english.libraryLoading);
    expect(await studio.alertText()).toContain(english.retrying);
    list.giveBack();
    await page.evaluate(() => dispatchEvent(new Event('online')));
    await studio.tracks.filter({ hasText: 'Rain' }).waitFor();
    await studio.hides(english.libraryFailed);
    expect(await page.getByRole('alert').filter({ hasText: /\S/ }).count()).toBe(0);
  });
});

describeInChromium('a track in the library', (visit) => {
  it('is saved as the file that the upstream has, under its title', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ prompt: 'Rain: "a/b"', seconds: 3 });
    const saving = studio.page.waitForEvent('download');
    await studio.press(english.download, studio.tracks.first());
    const download = await saving;
    expect(download.suggestedFilename()).toBe('Rain a b.wav');
    expect(Bun.file(await download.path()).size).toBe(44 + 3 * 48_000);
  });

  it('can be ordered again with its prompt, model, length and options, not before Generate is pressed', async () => {
    await using studio = await openStudio(visit);
    const { page, gate } = { page: studio.page, gate: studio.world.gate };
    const instrumental = page.getByRole('checkbox', { name: english.instrumental });
    await page.getByRole('combobox', { name: english.model }).selectOption('Sandbox Music 1');
    await instrumental.check();
    await studio.generate({ prompt: 'Rain', seconds: 7, isPublic: true });
    await page.reload();
    await studio.isLoaded();
    await studio.press(english.again, studio.tracks.first());
    expect(await studio.prompt.evaluate((field) => field === document.activeElement)).toBe(true);
    expect(gate.calls.filter((call) => call === 'POST /v1/music')).toHaveLength(1);
    await studio.press(english.generate);
    await studio.says(english.complete);
    await studio.tracks.nth(1).waitFor();
    const list = await page.request.get(`${studio.world.gatewayUrl}/api/upstream/v1/music/creations`, {
      headers: { origin: studio.world.studioUrl },
    });
    const { data } = await list.json();
    const [again, first] = data.map(
      ({ id, generation_id, created_at, ...order }: Record<string, unknown>) => order,
    );
    expect(again).toEqual(first);
    expect(again).toMatchObject({ prompt: 'Rain', music_length_ms: 7_000, force_instrumental: true });
  });
});

describeInChromium('a shared track', (visit) => {
  it('plays for somebody without cookies, by the link that was copied', async () => {
    await using owner = await openStudio(visit, {}, { permissions: ['clipboard-read', 'clipboard-write'] });
    await owner.generate({ prompt: PROMPT, isPublic: true });
    const link = await owner.sharedLink();
    await owner.shows(english.linkCopied);
    expect(await owner.page.evaluate(() => navigator.clipboard.readText())).toBe(link);
    expect(new URL(link).origin).toBe(owner.world.studioUrl);

    await using stranger = await visit();
    const studio = new Studio(await stranger.open(link));
    await studio.page.getByText(PROMPT).first().waitFor();
    await studio.press(english.listen);
    await studio.playsBeyond(0.3);
    expect(studio.page.url()).toBe(link);
    expect(await studio.audio.evaluate((audio: HTMLAudioElement) => audio.crossOrigin)).toBe('anonymous');
    expect(await stranger.context.cookies()).toEqual([]);
    expect(await studio.button(english.generate).isVisible()).toBe(false);
  });

  it('is not found by its link after Unpublish', async () => {
    await using owner = await openStudio(visit);
    await owner.generate({ prompt: PROMPT });
    const track = owner.tracks.first();
    await owner.press(english.publish, track);
    const link = await owner.sharedLink();
    for (const name of [english.unpublish, english.publish]) {
      await owner.press(name, track);
      await owner.button(name, track).waitFor({ state: 'hidden' });
      expect(await track.getByRole('link').count()).toBe(0);
    }
    await owner.press(english.unpublish, track);
    await owner.button(english.publish, track).waitFor();

    await using stranger = await visit();
    stranger.expectProblem(/status of 404/);
    const studio = new Studio(await stranger.open(link));
    await studio.shows(english.sharedGone);
    await studio.shows(english.sharedGoneText);
    expect(await studio.page.getByText(PROMPT).count()).toBe(0);
  });
});
