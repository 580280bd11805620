import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { startDemoWorld } from '../../support/demo-world.ts';
import { alertText, button, openStudio, region, signIn, tracks } from './page.ts';

const COOKIES = ['svc_music_access', 'svc_music_refresh'];

describeInChromium('a sign-in to the studio', (visit) => {
  it('leaves cookies out of reach of scripts, and no code behind', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await visitor.open(world.studioUrl);
    await signIn(page, 'Grace');

    const address = new URL(page.url());
    expect(address.href).toBe(`${world.studioUrl}/`);
    await region(page, english.session).getByText(english.signedInSince, { exact: true }).waitFor();
    expect(await page.evaluate(() => document.cookie)).toBe('');
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
    const cookies = (await visitor.context.cookies(world.gatewayUrl)).sort((a, b) =>
      a.name < b.name ? -1 : 1,
    );
    expect(cookies.map(({ name, httpOnly, sameSite, path }) => ({ name, httpOnly, sameSite, path }))).toEqual(
      COOKIES.map((name) => ({ name, httpOnly: true, sameSite: 'Lax', path: '/' })),
    );
    for (const { value } of cookies) expect(stored).not.toContain(decodeURIComponent(value));

    const history = await page.evaluate(() => navigation.entries().map(({ url }) => url));
    expect(history.length).toBeGreaterThan(0);
    expect(history.join()).not.toContain('code=');
  });

  it('lasts over a reload, which loads what belongs to the session', async () => {
    await using studio = await openStudio(visit, { startingBalance: 1_234 });
    const { page } = studio;
    await page.reload();
    await region(page, english.account).getByText('1,234').waitFor();
    const models = page.getByRole('combobox', { name: english.model }).getByRole('option');
    expect((await models.allInnerTexts()).sort()).toEqual(['Sandbox Music 1', 'Sandbox Music 2']);
    await page.getByText(english.libraryEmpty).waitFor();
    expect(await tracks(page).count()).toBe(0);
  });

  it('can be repeated after it was declined', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await visitor.open(world.studioUrl);
    const [request] = await Promise.all([
      page.waitForRequest('**/oauth/authorize?**'),
      button(page, 'Sign in').click(),
    ]);
    await page.getByRole('textbox', { name: 'Name' }).waitFor();
    const state = new URL(request.url()).searchParams.get('state');
    await page.goto(`${world.studioUrl}/callback?error=access_denied&state=${state}`);
    expect(await alertText(page)).toContain(english.signInDenied);
    expect(page.url()).toBe(`${world.studioUrl}/`);
    await signIn(page, 'Ada');
  });

  it('does not accept a response to a sign-in that somebody else has begun', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await visitor.open(`${world.studioUrl}/callback?code=somebody-elses&state=theirs`);
    expect(await alertText(page)).toContain(english.signInStale);
    expect(page.url()).toBe(`${world.studioUrl}/`);
    expect(await visitor.context.cookies(world.gatewayUrl)).toEqual([]);
    expect(world.upstream.counts().signIns).toBe(0);
  });

  it('ends with Sign out, at the upstream too', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    await button(page, 'Sign out').click();
    await button(page, 'Sign in').waitFor();
    expect(await visitor.context.cookies(world.gatewayUrl)).toEqual([]);
    expect(world.upstream.counts().logouts).toBe(1);
    await page.reload();
    await button(page, 'Sign in').waitFor();
  });
});
