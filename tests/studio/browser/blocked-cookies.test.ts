import { expect, it } from 'bun:test';
import { chromium } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { createFolder } from '../../support/temporary-folder.ts';
import { CHROMIUM_LAUNCH, describeInChromium } from '../chromium.ts';
import { openStudio, studioIn } from './page.ts';

/** Chromium's settings of a person who blocks all cookies, and with them every storage. */
const BLOCKING = { profile: { default_content_setting_values: { cookies: 2 } } };

describeInChromium('the studio in a browser that blocks its cookies', () => {
  it('plays a shared track until it is unpublished, and says so to a person who wants to sign in', async () => {
    await using stack = new AsyncDisposableStack();
    const owner = stack.use(await openStudio());
    const prompt = 'A slow waltz for two';
    await owner.generate({ prompt });
    const track = owner.tracks.first();
    await owner.press(english.publish, track);
    await owner.button(english.unpublish, track).waitFor();
    const link = await owner.sharedLink();
    // Only a profile on disk can have these settings.
    const { path: profile } = stack.use(await createFolder());
    await Bun.write(`${profile}/Default/Preferences`, JSON.stringify(BLOCKING));
    const context = await chromium.launchPersistentContext(profile, { ...CHROMIUM_LAUNCH, locale: 'en-GB' });
    stack.defer(() => context.close());
    const exceptions: Error[] = [];
    context.on('weberror', (event) => exceptions.push(event.error()));
    const { page, ...studio } = studioIn(await context.newPage());
    await page.goto(link);
    await studio.press(english.listen);
    await studio.playsBeyond(0.1);
    await studio.shows('By Ada, ');
    expect(await page.getByRole('heading', { level: 2 }).first().textContent()).toBe(prompt);
    expect(await studio.button(english.generate).isVisible()).toBe(false);
    await studio.press(english.signIn);
    await studio.warns(english.cookiesBlocked);
    expect(page.url()).toBe(link);

    await owner.press(english.unpublish, track);
    await owner.button(english.publish, track).waitFor();
    await page.reload();
    await studio.shows(english.sharedGone);
    expect(await page.getByText(prompt).count()).toBe(0);
    expect(exceptions).toEqual([]);
  });
});
