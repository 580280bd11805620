import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio } from './page.ts';

describeInChromium('an order in the studio', (visit) => {
  it('is one, although it is a double click, or Enter held down, and accepted before the second press', async () => {
    await using studio = await openStudio(visit);
    const { mouse, keyboard } = studio.page;
    await studio.prompt.fill('Rain');
    await studio.length.fill('3');
    await studio.button(english.generate).hover();
    await mouse.down();
    await mouse.up();
    await studio.tracks.first().waitFor();
    await mouse.down({ clickCount: 2 });
    await mouse.up({ clickCount: 2 });
    for (const [index, field] of [studio.length, studio.button(english.generate)].entries()) {
      await field.focus();
      await keyboard.down('Enter');
      await studio.tracks.nth(index + 1).waitFor();
      await keyboard.down('Enter');
      await keyboard.up('Enter');
    }
    await studio.generate({ prompt: 'Snow' });
    expect(studio.upstream.counts().generations).toBe(4);
  });

  it('without a clear response is the same attempt when it is sent again, also after a time offline', async () => {
    await using studio = await openStudio(visit);
    const { visitor, gate } = studio;
    visitor.expectProblem(/status of 500/);
    void studio.loseResponse(new Response(null, { status: 500 }));
    await studio.order();
    await studio.shows(english.sameAttempt);
    await studio.warns(english.uncertain);

    visitor.expectProblem(/ERR_/);
    await studio.setOffline(true);
    const offline = studio.alert.filter({ hasText: english.offline });
    // A sign-out that does not reach the gateway ends nothing.
    for (const name of [english.generate, english.signOut]) {
      await studio.press(name);
      await offline.waitFor();
    }
    await studio.setOffline(false);
    await offline.waitFor({ state: 'detached' });
    await studio.press(english.generate);
    await studio.says(english.complete);
    await studio.tracks.first().waitFor();
    expect(gate.idempotencyKeys).toEqual([expect.any(String), gate.idempotencyKeys[0] ?? 'a key']);
    expect(studio.upstream.counts().generations).toBe(1);
  });

  it('is not waited for after Cancel, and its track lands in the library; without an id it does not play', async () => {
    await using studio = await openStudio(visit);
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.1);
    await studio.press(english.cancel);
    await studio.says(english.cancelled);
    await studio.shows(english.nothingToPlay);
    expect(await studio.button(english.cancel).isVisible()).toBe(false);
    expect(await studio.unfinished()).toBe(0);
    audio.release();
    await studio.tracks.first().waitFor();

    studio.gate.replace('POST /v1/music', async (forward) => {
      const response = await forward();
      response.headers.delete('x-music-creation-id');
      return response;
    });
    await studio.generate({ seconds: 10 });
    expect(await studio.alert.count()).toBe(0);
    expect(await studio.page.getByText(english.nothingToPlay).isVisible()).toBe(true);
    expect(new Set(studio.gate.idempotencyKeys).size).toBe(2);
  });

  it('whose track breaks off and cannot be continued is paid for, and can be played from the library', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.1);
    visitor.expectProblem(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    visitor.expectProblem(/status of 404/);
    const files = '**/v1/music/creations/*/content';
    const headers = {
      'access-control-allow-origin': world.studioUrl,
      'access-control-allow-credentials': 'true',
    };
    await page.route(files, (route) => route.fulfill({ status: 404, headers }));
    world.upstreamNetwork.break();
    await studio.says(english.broken);
    await studio.warns(english.interrupted);
    await studio.shows(english.nothingToPlay);
    expect(await studio.unfinished()).toBe(0);
    audio.release();
    await page.unroute(files);
    await studio.press(english.play, studio.tracks.first());
    await studio.playsBeyond(0.1);
  });
});
