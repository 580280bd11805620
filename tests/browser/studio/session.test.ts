import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { eventually } from '../../support/eventually.ts';
import { openStudio, Studio } from './page.ts';

const COOKIE = { httpOnly: true, sameSite: 'Lax', path: '/' };
const COOKIES = ['svc_music_access', 'svc_music_refresh'].map((name) => ({ name, ...COOKIE }));

describeInChromium('a sign-in to the studio', (visit) => {
  it('leaves cookies out of reach of scripts, and no code behind', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { world, visitor, page } = studio;
    await studio.signIn('Grace');

    expect(page.url()).toBe(`${world.studioUrl}/`);
    const gatewayPanel = await studio.openGatewayPanel();
    await gatewayPanel.getByText(english.signedInSince, { exact: true }).waitFor();
    expect(await page.evaluate(() => document.cookie)).toBe('');
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
    const cookies = await visitor.context.cookies(world.gatewayUrl);
    expect(cookies.toSorted((a, b) => a.name.localeCompare(b.name))).toMatchObject(COOKIES);
    for (const { value } of cookies) expect(stored).not.toContain(decodeURIComponent(value));

    const history = await page.evaluate(() => navigation.entries().map(({ url }) => url));
    expect(history.length).toBeGreaterThan(0);
    expect(history.join()).not.toContain('code=');
  });

  it('does not accept a foreign response, and can be repeated after it was declined', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { world, visitor, page } = studio;
    await page.goto(`${world.studioUrl}/callback?code=somebody-elses&state=theirs`);
    expect(await studio.alertText()).toContain(english.signInStale);
    expect(page.url()).toBe(`${world.studioUrl}/`);
    expect(await visitor.context.cookies(world.gatewayUrl)).toEqual([]);
    expect(world.upstream.counts().signIns).toBe(0);

    const request = page.waitForRequest('**/oauth/authorize?**');
    await studio.press(english.signIn);
    await page.getByRole('textbox', { name: 'Name' }).waitFor();
    const state = new URL((await request).url()).searchParams.get('state');
    await page.goto(`${world.studioUrl}/callback?error=access_denied&state=${state}`);
    expect(await studio.alertText()).toContain(english.signInDenied);
    expect(page.url()).toBe(`${world.studioUrl}/`);
    await studio.signIn('Ada');
  });
});

describeInChromium('the history after a sign-in', (visit) => {
  it('leads back to where the person was before the studio, not to the pages of the identity provider', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { page, visitor, world } = studio;
    visitor.tolerateProblem(/favicon/);
    await page.goto(`${world.studioUrl}/config.json`);
    await page.goto(`${world.studioUrl}/?listen=`);
    await studio.signIn('Ada');
    expect(page.url()).toBe(`${world.studioUrl}/?listen=`);
    await studio.isLoaded();
    await page.goBack();
    expect(page.url()).toBe(`${world.studioUrl}/config.json`);
  });
});

describeInChromium('the first sign-in after a sign-out', (visit) => {
  it('asks who it is, and lets somebody else in', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { page, visitor, world } = studio;
    await page.goto(`${world.studioUrl}/?listen=`);
    await studio.signIn('Ada');
    // Calls in flight would be refused at the end of the session, which the browser reports as problems.
    await studio.isLoaded();
    // A session that ends by itself leaves the person at the identity provider.
    await visitor.context.clearCookies({ name: /^svc_/ });
    await page.reload();
    await studio.press(english.signIn);
    await studio.region(english.account).getByText('Ada').waitFor();
    await studio.isLoaded();
    await studio.press(english.signOut);
    await studio.signIn('Grace');
    expect(page.url()).toBe(`${world.studioUrl}/?listen=`);
    await studio.isLoaded();
    await studio.press(english.signOut);
    await studio.signIn('Grace');
    expect(await studio.region(english.account).getByText('Ada').count()).toBe(0);
  });
});

describeInChromium('the focus', (visit) => {
  it('goes to the form after a sign-in, and back to Sign in after a sign-out', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    await studio.signIn('Ada');
    const focused = () => studio.page.evaluate(() => document.activeElement?.textContent);
    await eventually(async () => (await focused()) === english.newTrack, 'the focus on the form');
    await studio.isLoaded();
    await studio.press(english.signOut);
    await eventually(async () => (await focused()) === english.signIn, 'the focus on Sign in');
  });
});

describeInChromium('a session in the studio', (visit) => {
  it('lasts over a reload, which loads what belongs to it, and ends with Sign out, at the upstream too', async () => {
    await using studio = await openStudio(visit, { startingBalance: 1_234 });
    const { page, world, visitor } = studio;
    await page.reload();
    await studio.region(english.account).getByText('1,234').waitFor();
    const models = page.getByRole('combobox', { name: english.model }).getByRole('option');
    expect((await models.allInnerTexts()).sort()).toEqual(['Sandbox Music 1', 'Sandbox Music 2']);
    await studio.shows(english.libraryEmpty);
    expect(await studio.tracks.count()).toBe(0);

    await studio.press(english.signOut);
    await studio.button(english.signIn).waitFor();
    expect(await visitor.context.cookies(world.gatewayUrl)).toEqual([]);
    expect(studio.upstream.counts().logouts).toBe(1);
    await page.reload();
    await studio.button(english.signIn).waitFor();
  });

  it('is refreshed once for a generation, and once after a track whose access token expired as it arrived', async () => {
    await using studio = await openStudio(visit);
    const renewals = (await studio.openGatewayPanel()).getByText(/^Refreshed at \d/);
    expect(await renewals.count()).toBe(0);
    studio.upstream.expireAccessTokens();
    await studio.generate();
    await studio.playsBeyond(0.3);
    await renewals.first().waitFor();
    expect(await renewals.count()).toBe(1);
    expect(studio.upstream.counts()).toMatchObject({ refreshes: 1, refusedRefreshes: 0, generations: 1 });

    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.3);
    studio.upstream.expireAccessTokens();
    audio.release();
    await studio.says(english.complete);
    await studio.tracks.nth(1).waitFor();
    await studio.region(english.account).getByText('4,974').waitFor();
    expect(studio.upstream.counts()).toMatchObject({ refreshes: 2, refusedRefreshes: 0 });
  });

  it('is refreshed once for two tabs that load everything at once with an expired pair, and ends in both', async () => {
    await using first = await openStudio(visit);
    const { world, visitor, upstream } = first;
    const second = new Studio(await visitor.open(world.studioUrl));
    await second.isLoaded();
    upstream.expireAccessTokens();
    // The first to refresh waits for the other's call, so that both are under way with the same spent pair.
    const bothHaveAsked = world.gate.arrive('GET /v1/me', 2);
    world.gate.replace('POST /v1/auth/refresh', async (forward) => {
      await bothHaveAsked;
      return forward();
    });
    await Promise.all([first.page.reload(), second.page.reload()]);
    for (const studio of [first, second]) {
      await studio.region(english.account).getByText('Ada').waitFor();
      await studio.isLoaded();
    }
    expect(upstream.counts()).toMatchObject({ refreshes: 1, refusedRefreshes: 0 });
    await first.generate();
    await second.generate();
    expect(upstream.counts()).toMatchObject({ refreshes: 1, generations: 2 });

    await first.press(english.signOut);
    await first.button(english.signIn).waitFor();
    // The other tab learns of it without a call of its own.
    expect(await second.alertText()).toContain(english.sessionEnded);
    await second.button(english.signIn).waitFor();
    expect(upstream.counts().generations).toBe(2);
  });
});
