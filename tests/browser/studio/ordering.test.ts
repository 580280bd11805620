import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { watchPieces } from '../pieces.ts';
import { openStudio } from './page.ts';

describeInChromium('an order in the studio', (visit) => {
  it('is one, although it is a double click, or Enter held down, and accepted before the second press', async () => {
    await using studio = await openStudio(visit);
    const { mouse, keyboard } = studio.page;
    await studio.prompt.fill('Rain');
    await studio.length.fill('3');
    for (const [index, field] of [undefined, studio.length, studio.button(english.generate)].entries()) {
      if (field) {
        await field.focus();
        await keyboard.down('Enter');
        await studio.tracks.nth(index).waitFor();
        await keyboard.down('Enter');
        await keyboard.up('Enter');
      } else {
        await studio.button(english.generate).hover();
        await mouse.down();
        await mouse.up();
        await studio.tracks.nth(index).waitFor();
        await mouse.down({ clickCount: 2 });
        await mouse.up({ clickCount: 2 });
      }
    }
    await studio.generate({ prompt: 'Snow' });
    expect(studio.upstream.counts().generations).toBe(4);
  });

  it('without a clear response is the same attempt when it is sent again, also after a time offline', async () => {
    await using studio = await openStudio(visit);
    const { gate, visitor, upstream } = studio;
    const keys = gate.idempotencyKeys;
    visitor.expectProblem(/status of 500/);
    void studio.loseResponse(new Response(null, { status: 500 }));
    await studio.order();
    await studio.shows(english.sameAttempt);
    await studio.warns(english.uncertain);

    visitor.expectProblem(/ERR_/);
    await studio.setOffline(true);
    await studio.press(english.generate);
    const offline = studio.alert.filter({ hasText: english.offline });
    await offline.waitFor();
    // A sign-out that does not reach the gateway ends nothing.
    await studio.press(english.signOut);
    await offline.waitFor();
    expect(await studio.button(english.signOut).isVisible()).toBe(true);
    await studio.setOffline(false);
    await offline.waitFor({ state: 'detached' });
    await studio.shows(english.sameAttempt);
    await studio.press(english.generate);
    await studio.says(english.complete);
    await studio.tracks.first().waitFor();
    expect(keys).toEqual([expect.any(String), keys[0] ?? 'a key']);
    expect(upstream.counts().generations).toBe(1);
    await studio.generate();
    expect(new Set(keys).size).toBe(2);
  });

  it('that is refused says why; the track of one without an id cannot be opened', async () => {
    await using studio = await openStudio(visit, { startingBalance: 10 });
    const { page, visitor, gate } = studio;
    visitor.expectProblem(/status of 402/);
    await studio.order({ seconds: 30 });
    await studio.warns(english.noCredits);
    expect(await page.getByRole('status').filter({ hasText: /\S/ }).count()).toBe(0);
    expect(await page.getByText(english.sameAttempt).count()).toBe(0);

    gate.replace('POST /v1/music', async (forward) => {
      const response = await forward();
      response.headers.delete('x-music-creation-id');
      return response;
    });
    await studio.generate();
    expect(await studio.alert.count()).toBe(0);
    expect(await page.getByText(english.nothingToPlay).isVisible()).toBe(true);
    expect(studio.upstream.counts().generations).toBe(1);
  });

  it('is not waited for after Cancel, and its track lands in the library', async () => {
    await using studio = await openStudio(visit);
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.3);
    await studio.press(english.cancel);
    await studio.says(english.cancelled);
    await studio.shows(english.nothingToPlay);
    expect(await studio.button(english.cancel).isVisible()).toBe(false);
    audio.release();
    await studio.tracks.first().waitFor();
    expect(await studio.alert.count()).toBe(0);
    await studio.generate({ seconds: 10 });
    expect(new Set(studio.gate.idempotencyKeys).size).toBe(2);
  });

  it('whose track breaks off and cannot be continued is paid for, and can be played from the library', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    await page.evaluate(watchPieces);
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.3);
    visitor.expectProblem(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    const refusal = await studio.refuseFiles();
    world.upstreamNetwork.break();
    await studio.says(english.broken);
    await studio.warns(english.interrupted);
    await studio.shows(english.nothingToPlay);
    expect(await page.evaluate(() => watched.kinds.at(-1))).toBe('break');
    audio.release();
    await refusal.end();
    await studio.press(english.play, studio.tracks.first());
    await studio.playsBeyond(0.3);
  });
});
