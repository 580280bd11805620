import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { eventually } from '../../support/eventually.ts';
import { describeInChromium } from '../chromium.ts';
import { type OpenedStudio, openStudio } from './page.ts';

const COOKIE = { httpOnly: true, sameSite: 'Lax', path: '/' };
const COOKIES = ['svc_music_access', 'svc_music_refresh'].map((name) => ({ name, ...COOKIE }));

/** Waits until the focus is on the element with this text. */
function hasFocus({ page }: OpenedStudio, text: string): Promise<boolean> {
  const isThere = async () => (await page.evaluate(() => document.activeElement?.textContent)) === text;
  return eventually(isThere, `the focus on “${text}”`);
}

describeInChromium('a session in the studio', (visit) => {
  it('begins with a sign-in that leaves no token and no code behind, outlasts the page, and ends with Sign out', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false, startingBalance: 1_234 });
    const { world, visitor, page, upstream } = studio;
    visitor.tolerateProblem(/favicon/);
    const [before, home] = [`${world.studioUrl}/config.json`, `${world.studioUrl}/?listen=`];
    await page.goto(before);
    await page.goto(home);
    await studio.signIn('Grace');
    expect(page.url()).toBe(home);
    await studio.isLoaded();
    await hasFocus(studio, english.newTrack);
    const panel = studio.region(english.gatewayDid);
    await panel.getByRole('heading').click();
    await panel.getByText(english.signedInSince, { exact: true }).waitFor();
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
    // Back leads past the pages of the identity provider.
    await page.goBack();
    expect(page.url()).toBe(before);

    await page.goto(home);
    await studio.isLoaded();
    await studio.accountShows('1,234');
    const models = page.getByRole('combobox', { name: english.model }).getByRole('option');
    expect((await models.allInnerTexts()).sort()).toEqual(['Sandbox Music 1', 'Sandbox Music 2']);
    await studio.shows(english.libraryEmpty);
    await studio.signOut();
    await hasFocus(studio, english.signIn);
    expect(await visitor.context.cookies(world.gatewayUrl)).toEqual([]);
    expect(upstream.counts()).toMatchObject({ signIns: 1, logouts: 1 });
    await page.reload();
    await studio.button(english.signIn).waitFor();
  });

  it('does not begin with a foreign response, and can begin after a sign-in was declined', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { world, visitor, page, upstream } = studio;
    await page.goto(`${world.studioUrl}/callback?code=somebody-elses&state=theirs`);
    await studio.warns(english.signInStale);
    await studio.isReady();
    expect(page.url()).toBe(`${world.studioUrl}/`);
    expect(await visitor.context.cookies(world.gatewayUrl)).toEqual([]);
    expect(upstream.counts().signIns).toBe(0);

    const request = page.waitForRequest('**/oauth/authorize?**');
    await studio.press(english.signIn);
    await page.getByRole('textbox', { name: 'Name' }).waitFor();
    const state = new URL((await request).url()).searchParams.get('state');
    await page.goto(`${world.studioUrl}/callback?error=access_denied&state=${state}`);
    await studio.warns(english.signInDenied);
    await studio.isReady();
    expect(page.url()).toBe(`${world.studioUrl}/`);
    await studio.signIn('Ada');
  });

  it('begins again without a question after it has ended by itself, and with one after a sign-out', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { page, visitor } = studio;
    await studio.signIn('Ada');
    // Calls in flight would be refused at the end of the session, which the browser reports as problems.
    await studio.isLoaded();
    await visitor.context.clearCookies({ name: /^svc_/ });
    await page.reload();
    await studio.press(english.signIn);
    await studio.accountShows('Ada');
    await studio.isLoaded();
    for (const name of ['Grace', 'Edith']) {
      await studio.signOut();
      await studio.signIn(name);
      await studio.isLoaded();
    }
    expect(await studio.region(english.account).getByText('Ada').count()).toBe(0);
  });

  it('is refreshed once for an order, and once after a track whose access token expired as it arrived', async () => {
    await using studio = await openStudio(visit);
    const panel = studio.region(english.gatewayDid);
    await panel.getByRole('heading').click();
    const renewals = panel.getByText(/^Refreshed at \d/);
    expect(await renewals.count()).toBe(0);
    studio.upstream.expireAccessTokens();
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.3);
    await renewals.first().waitFor();
    expect(await renewals.count()).toBe(1);
    expect(studio.upstream.counts()).toMatchObject({ refreshes: 1, generations: 1 });
    studio.upstream.expireAccessTokens();
    audio.release();
    await studio.says(english.complete);
    await eventually(() => studio.upstream.counts().refreshes > 1, 'the second refresh');
    await studio.isLoaded();
    expect(studio.upstream.counts()).toMatchObject({ refreshes: 2, refusedRefreshes: 0 });
  });

  it('is shared by two tabs: they refresh once, learn of each other’s changes, and end together', async () => {
    await using first = await openStudio(visit);
    const { world, visitor, upstream } = first;
    // Without checks by the clock, only what the other tab tells can lead to one.
    await visitor.context.addInitScript('globalThis.setInterval = () => 0');
    const second = await first.openTab();
    await second.isLoaded();
    upstream.expireAccessTokens();
    // The first to refresh waits for the other's call, so that both are under way with the same spent pair.
    const bothHaveAsked = world.gate.arrive('GET /v1/me', 2);
    world.gate.replace('POST /v1/auth/refresh', async (forward) => {
      await bothHaveAsked;
      return forward();
    });
    await Promise.all([first.reload(), second.reload()]);
    await first.generate({ prompt: 'Rain' });
    expect(upstream.counts()).toMatchObject({ refreshes: 1, refusedRefreshes: 0, generations: 1 });
    await second.tracks.filter({ hasText: 'Rain' }).waitFor();
    await second.accountShows('4,994');
    await second.press(english.publish, second.tracks.first());
    await first.button(english.unpublish, first.tracks.first()).waitFor();

    await first.signOut();
    await second.button(english.signIn).waitFor();
    await second.warns(english.sessionEnded);
  });
});
