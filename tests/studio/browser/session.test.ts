import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { eventually } from '../../support/eventually.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio } from './page.ts';

const COOKIE = { httpOnly: true, sameSite: 'Lax', path: '/' };
const COOKIES = ['svc_music_access', 'svc_music_refresh'].map((name) => ({ name, ...COOKIE }));

const valuesOf = (fields: readonly Element[]) =>
  fields.map((field) =>
    field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement ? field.value : '',
  );

describeInChromium('a session in the studio', () => {
  it('begins with a sign-in that leaves no token and no code behind, outlasts the page, and ends with Sign out', async () => {
    await using studio = await openStudio({ isSignedIn: false });
    const { world, visitor, page, upstream } = studio;
    visitor.tolerateProblem(/favicon/);
    const home = `${world.studioUrl}/?listen=`;
    await page.goto(home);
    await studio.signIn('Grace');
    expect(page.url()).toBe(home);
    await studio.isLoaded();
    const cookies = await visitor.context.cookies(world.gatewayUrl);
    expect(cookies.toSorted((a, b) => a.name.localeCompare(b.name))).toMatchObject(COOKIES);
    const [readable, stored, history] = await page.evaluate(() => [
      document.cookie,
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
      navigation.entries().map(({ url }) => url),
    ]);
    expect(readable).toBe('');
    for (const { value } of cookies) expect(stored).not.toContain(decodeURIComponent(value));
    expect(history).toContain(home);
    expect(history?.toString()).not.toContain('code=');

    await studio.reload();
    await studio.press(english.signOut);
    await studio.button(english.signIn).waitFor();
    expect(await visitor.context.cookies(world.gatewayUrl)).toEqual([]);
    expect(upstream.counts()).toMatchObject({ signIns: 1, logouts: 1 });
    await page.reload();
    await studio.signIn('Ada');
    expect(await studio.region(english.account).getByText('Grace').count()).toBe(0);

    // Also when nobody waits for its end.
    const logout = studio.gate.hold('POST /v1/auth/logout');
    await studio.press(english.signOut);
    await logout.arrived;
    // The second page arrives when the browser has given up what the first one left unfinished.
    for (const address of ['about:blank', `${world.studioUrl}/config.json`]) await page.goto(address);
    logout.release();
    const areGone = async () => (await visitor.context.cookies(world.gatewayUrl)).length === 0;
    await eventually(areGone, 'the cookies to go');
  });

  it('does not begin with a foreign response or without kept cookies, and its end shows when the page is seen again', async () => {
    await using studio = await openStudio({ isSignedIn: false });
    const { world, visitor, page, upstream } = studio;
    await page.goto(`${world.studioUrl}/callback?code=somebody-elses&state=theirs`);
    await studio.warns(english.signInStale);
    await studio.isReady();
    expect(page.url()).toBe(`${world.studioUrl}/`);
    expect(upstream.counts().signIns).toBe(0);

    await page.route('**/api/auth/session', async (route) => {
      await visitor.context.clearCookies({ name: /^svc_/ });
      await route.fallback();
    });
    await studio.press(english.signIn);
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada');
    await studio.press('Sign in');
    await studio.warns(english.cookiesBlocked);
    expect(page.url()).toBe(`${world.studioUrl}/`);
    await page.unrouteAll();
    await studio.press(english.signIn);
    await studio.accountShows('Ada');
    expect(upstream.counts().signIns).toBe(2);

    await studio.isLoaded();
    visitor.tolerateProblem(/status of 401/);
    await visitor.context.clearCookies();
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await studio.warns(english.sessionEnded);
  });

  it('is shared by two tabs: they refresh once, learn of each other’s changes, sound in turn, and end together', async () => {
    await using first = await openStudio();
    const { upstream } = first;
    const second = await first.openTab();
    await second.isLoaded();
    upstream.expireAccessTokens();
    await first.generate({ prompt: 'Hail', seconds: 30 });
    expect(upstream.counts()).toMatchObject({ refreshes: 1, refusedRefreshes: 0, generations: 1 });
    await first.region(english.gatewayDid).getByRole('heading').click();
    await first.shows('Refreshed at');
    await second.accountShows('4,940');
    await first.button(english.pause).waitFor();
    await second.press(english.play, second.tracks.filter({ hasText: 'Hail' }));
    await first.button(english.listen).waitFor();
    await second.generate({ prompt: 'Hail for me' });
    // All that it has of the person: an order, a deletion, a question about a track, and what is typed.
    const held = first.gate.hold('POST /v1/music');
    await second.order({ prompt: 'Hail again' });
    await held.arrived;
    await second.press(english.delete, second.tracks.filter({ hasText: 'Hail for' }));
    await second.press(english.rename, second.tracks.filter({ hasText: 'Hail' }));
    await first.press(english.signOut);
    await second.warns(english.signedOutElsewhere);
    for (const { page } of [first, second]) {
      expect(await page.getByText(/Hail|4,940|Ada/).count()).toBe(0);
      expect(await page.locator('textarea, dialog input[type=text]').evaluateAll(valuesOf)).toEqual(['', '']);
    }
    expect(await second.page.getByRole('dialog').count()).toBe(0);
    held.release();

    // A tab that hears nothing of the others learns it from the check of the session.
    await first.signIn('Grace');
    await first.visitor.context.addInitScript('delete globalThis.BroadcastChannel');
    const deaf = await first.openTab();
    await deaf.isLoaded();
    first.visitor.tolerateProblem(/status of 401/);
    await first.press(english.signOut);
    await first.button(english.signIn).waitFor();
    await deaf.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await deaf.warns(english.signedOutElsewhere);
  });

  it('of another account empties the other tab as soon as it begins', async () => {
    await using first = await openStudio();
    // Also of what the first tab had asked for when the cookies went.
    first.visitor.tolerateProblem(/ERR_|status of 401/);
    await first.generate({ prompt: 'Rain for me' });
    const audio = await first.orderHeld({ prompt: 'Snow for me' });
    await first.playsBeyond(0.3);
    await first.prompt.fill('A secret of Ada');
    await first.visitor.context.clearCookies();
    const second = await first.openTab();
    await second.signIn('Grace');

    await first.accountShows('Grace');
    for (const text of [english.otherAccount, english.libraryEmpty, english.nothingToPlay])
      await first.shows(text);
    expect(await first.lines.count()).toBe(0);
    expect(await first.prompt.inputValue()).toBe('');
    expect(await first.page.getByText('for me').count()).toBe(0);
    expect(await first.page.getByRole('status').filter({ hasText: /\S/ }).count()).toBe(0);
    audio.release();
    await first.reload();
    expect(await first.prompt.inputValue()).toBe('');

    // Also when no page has signed in, and the first one only hears of a change from the other.
    await second.isLoaded();
    await first.signInBehind('Ada');
    await second.order();
    await first.accountShows('Ada');
  });
});
