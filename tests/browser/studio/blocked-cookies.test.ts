import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { program } from '../../support/requirements.ts';
import { openStudio, Studio } from './page.ts';

const CHROMIUM = program('chromium');
/** Chromium's settings of a person who blocks all cookies, and with them every storage. */
const BLOCKING = { profile: { default_content_setting_values: { cookies: 2 } } };

/** Opens the page in a browser with such settings, which only a profile on disk can have. */
async function openBlocking(address: string) {
  await using stack = new AsyncDisposableStack();
  const profile = await mkdtemp(join(tmpdir(), 'blocked-cookies-'));
  stack.defer(() => rm(profile, { recursive: true, force: true }));
  await Bun.write(join(profile, 'Default', 'Preferences'), JSON.stringify(BLOCKING));
  const executablePath = Bun.which(CHROMIUM.name) ?? CHROMIUM.name;
  const args = ['--no-sandbox', '--disable-gpu', '--autoplay-policy=no-user-gesture-required'];
  const context = await chromium.launchPersistentContext(profile, { executablePath, args, locale: 'en-GB' });
  stack.defer(() => context.close());
  const page = await context.newPage();
  const exceptions: string[] = [];
  page.on('pageerror', ({ message }) => exceptions.push(message));
  await page.goto(address);
  const opened = stack.move();
  return { studio: new Studio(page), exceptions, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

describeInChromium('the studio in a browser that blocks all cookies', (visit) => {
  it('says so to a person who wants to sign in, and plays a shared track', async () => {
    await using owner = await openStudio(visit);
    await owner.generate({ isPublic: true });
    await using browser = await openBlocking(await owner.sharedLink());
    const { studio, exceptions } = browser;
    await studio.press(english.listen);
    await studio.playsBeyond(0.3);
    await studio.press(english.signIn);
    expect(await studio.alertText()).toContain(english.cookiesBlocked);
    expect(new URL(studio.page.url()).origin).toBe(owner.world.studioUrl);
    expect(exceptions).toEqual([]);
  });
});

describeInChromium('the studio in a browser that does not keep the session', (visit) => {
  it('says so after a sign-in, and stays on the page', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { page, world, visitor } = studio;
    await page.route('**/api/auth/session', async (route) => {
      await visitor.context.clearCookies({ name: /^svc_/ });
      await route.fallback();
    });
    await studio.press(english.signIn);
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada');
    await studio.press('Sign in');
    await studio.shows(english.cookiesBlocked);
    expect(page.url()).toBe(`${world.studioUrl}/`);
    expect(world.upstream.counts().signIns).toBe(1);
  });
});
