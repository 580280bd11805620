import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio, studioIn } from './page.ts';

const LIST = 'GET /v1/music/creations';
const PROMPT = 'A slow waltz for two';

describeInChromium('the library of the studio', (visit) => {
  it('shows a new track on top, marks the open one, leaves the focus, and says when the gateway is away', async () => {
    await using studio = await openStudio(visit);
    const { gate, page, tracks, visitor, world } = studio;
    for (const prompt of ['Rain', 'Snow']) await studio.generate({ prompt, seconds: 30 });
    await studio.press(english.pause);
    const audio = gate.holdAudio(1_000);
    // The sandbox is done at once; the newest track comes first.
    const list = gate.replaceText(LIST, '"ready"', '"generating"');
    await studio.prompt.fill('Hail');
    await studio.button(english.publish, tracks.nth(1)).focus();
    // A press of Generate would take the focus.
    await page.locator('form[data-part=form]').evaluate((form: HTMLFormElement) => form.requestSubmit());
    const newest = tracks.first();
    await newest.filter({ hasText: english.generating }).waitFor();
    const titles = await tracks.locator('[data-part=title]').allTextContents();
    expect(titles).toEqual(['Hail', 'Snow', 'Rain']);
    const isOpen = (index: number) => tracks.nth(index).and(page.locator('[aria-current=true]')).waitFor();
    await isOpen(0);
    const hasFocus = () => tracks.nth(2).evaluate((item) => item.contains(document.activeElement));
    expect(await hasFocus()).toBe(true);

    list.giveBack();
    audio.release();
    await studio.says(english.complete);
    await newest.filter({ hasText: english.private }).waitFor();
    await studio.button(english.pause, newest).waitFor();
    expect(await hasFocus()).toBe(true);
    await studio.press(english.play, tracks.nth(1));
    await isOpen(1);
    expect(await page.locator('[aria-current=true]').count()).toBe(1);

    visitor.expectProblem(/ERR_/);
    world.network.cut();
    await studio.press(english.publish, newest);
    await studio.warns(english.unreachable);
    world.network.repair();
    await studio.press(english.tryNow);
    await studio.alert.waitFor({ state: 'detached' });
    // After the repair both may be asked for again, and be in flight at the sign-out.
    visitor.tolerateProblem(/status of 401.*\/(?:auth\/session|content)/);
    await studio.press(english.signOut);
    await studio.button(english.signIn).waitFor();
    expect(await page.locator('[data-part=list] > li').count()).toBe(0);
  });

  it('saves a track as the file that the upstream has, and fills in the form for another one like it', async () => {
    await using studio = await openStudio(visit);
    const { page, gate, visitor } = studio;
    const prompt = 'Rain: "a/b"';
    await studio.generate({ prompt, seconds: 7 });
    const saving = page.waitForEvent('download');
    await studio.press(english.download, studio.tracks.first());
    const download = await saving;
    expect(download.suggestedFilename()).toBe('Rain a b.wav');
    expect(Bun.file(await download.path()).size).toBe(44 + 7 * 48_000);

    // It is loaded again when the browser is online again.
    visitor.expectProblem(/status of 500/);
    const list = gate.replace(LIST, () => new Response('{}', { status: 500 }));
    await page.reload();
    await studio.shows(english.libraryFailed);
    list.giveBack();
    await page.evaluate(() => dispatchEvent(new Event('online')));
    await studio.prompt.fill('Snow');
    await studio.press(english.again, studio.tracks.first());
    expect(await studio.prompt.and(page.locator(':focus')).inputValue()).toBe(prompt);
    expect(gate.idempotencyKeys).toHaveLength(1);
  });
});

describeInChromium('a shared track', (visit) => {
  it('plays by the link that was copied for somebody without cookies, until it is unpublished', async () => {
    await using owner = await openStudio(visit, {}, { permissions: ['clipboard-read', 'clipboard-write'] });
    const { gate, world } = owner;
    await owner.generate({ prompt: PROMPT });
    const track = owner.tracks.first();
    await owner.button(english.publish, track).evaluate((element: HTMLButtonElement) => {
      element.click();
      element.click();
    });
    await owner.button(english.unpublish, track).waitFor();
    const names = (await track.ariaSnapshot()).match(/(?<=button ").*(?=")/g) ?? [];
    expect([names.length, names.filter((name) => !name.endsWith(` ${PROMPT}`))]).toEqual([7, []]);
    expect(gate.calls.filter((call) => call.startsWith('PATCH '))).toHaveLength(1);
    await owner.accountShows(`Visibility changed: ${PROMPT}`);
    const link = await owner.sharedLink();
    await owner.shows(english.linkCopied);
    expect(await owner.page.evaluate(() => navigator.clipboard.readText())).toBe(link);
    expect(new URL(link).origin).toBe(world.studioUrl);

    const call = `GET /v1/music/public/${new URL(link).searchParams.get('listen')}`;
    const description = gate.replaceText(call, '"ready"', '"generating"');
    const file = gate.replace(`${call}/content`, () => new Response(null, { status: 409 }));
    await using stranger = await visit();
    stranger.tolerateProblem(/409/);
    const studio = studioIn(await stranger.open(link));
    await studio.shows(english.sharedBeingMade);
    expect(await studio.audio.getAttribute('src')).toBeNull();
    description.giveBack();
    await studio.page.waitForFunction(() => document.querySelector('audio')?.error);
    // Only to a person who has pressed Listen it says that it does not play.
    expect(await studio.page.getByText(english.notPlayable).isVisible()).toBe(false);
    await studio.press(english.listen);
    await studio.shows(english.notPlayable);
    file.giveBack();
    await studio.press(english.listen);
    await studio.playsBeyond(0.1);
    expect(studio.page.url()).toBe(link);
    expect(await studio.page.getByRole('heading', { level: 2 }).first().textContent()).toBe(PROMPT);
    await studio.shows('By Ada, ');
    expect(await studio.audio.evaluate((audio: HTMLAudioElement) => audio.crossOrigin)).toBe('anonymous');
    expect(await stranger.context.cookies()).toEqual([]);
    expect(await studio.button(english.generate).isVisible()).toBe(false);

    // Where the clipboard is refused, the link is there to be copied by hand.
    await owner.page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new DOMException('', 'NotAllowedError'));
    });
    await owner.sharedLink();
    await owner.shows(english.linkShown);
    await owner.press(english.unpublish, track);
    await owner.button(english.publish, track).waitFor();
    expect(await track.getByRole('link').count()).toBe(0);
    stranger.expectProblem(/status of 404/);
    await studio.page.reload();
    await studio.shows(english.sharedGone);
    await studio.shows(english.sharedGoneText);
    expect(await studio.page.getByText(PROMPT).count()).toBe(0);
  });
});
