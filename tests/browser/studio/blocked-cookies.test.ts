import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { CHROMIUM_LAUNCH, describeInChromium } from '../chromium.ts';
import { openStudio, Studio } from './page.ts';

/** Chromium's settings of a person who blocks all cookies, and with them every storage. */
const BLOCKING = { profile: { default_content_setting_values: { cookies: 2 } } };

/** Opens the page in a browser with these settings, which only a profile on disk can have. */
async function openBlocking(address: string) {
  await using stack = new AsyncDisposableStack();
  const profile = await mkdtemp(join(tmpdir(), 'blocked-cookies-'));
  stack.defer(() => rm(profile, { recursive: true, force: true }));
  await Bun.write(join(profile, 'Default', 'Preferences'), JSON.stringify(BLOCKING));
  const context = await chromium.launchPersistentContext(profile, { ...CHROMIUM_LAUNCH, locale: 'en-GB' });
  stack.defer(() => context.close());
  const page = await context.newPage();
  const exceptions: string[] = [];
  page.on('pageerror', ({ message }) => exceptions.push(message));
  await page.goto(address);
  const opened = stack.move();
  return { studio: new Studio(page), exceptions, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

describeInChromium('the studio in a browser without its cookies', (visit) => {
  it('says so to a person who blocks them and wants to sign in, and plays a shared track', async () => {
    await using owner = await openStudio(visit);
    await owner.generate({ isPublic: true });
    await using browser = await openBlocking(await owner.sharedLink());
    const { studio, exceptions } = browser;
    await studio.press(english.listen);
    await studio.playsBeyond(0.3);
    await studio.press(english.signIn);
    await studio.warns(english.cookiesBlocked);
    expect(new URL(studio.page.url()).origin).toBe(owner.world.studioUrl);
    expect(exceptions).toEqual([]);
  });

  it('says so after a sign-in whose session the browser has not kept, and stays on the page', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { page, world, visitor } = studio;
    await page.route('**/api/auth/session', async (route) => {
      await visitor.context.clearCookies({ name: /^svc_/ });
      await route.fallback();
    });
    await studio.press(english.signIn);
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada');
    await studio.press('Sign in');
    await studio.warns(english.cookiesBlocked);
    expect(page.url()).toBe(`${world.studioUrl}/`);
    expect(world.upstream.counts().signIns).toBe(1);
  });
});
