import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio, signInBehind } from './page.ts';

describeInChromium('a track that was being made when the page was left', (visit) => {
  it('is waited for after a new sign-in, also in another tab, and plays in both when it is complete', async () => {
    await using first = await openStudio(visit);
    const { page, gate, world, visitor, upstream } = first;
    visitor.tolerateProblem(/status of 409/);
    visitor.expectProblem(/ERR_/);
    visitor.expectProblem(/status of 401/);
    const audio = await first.orderHeld();
    await first.says(english.arriving);
    const kept = await page.evaluate(() => Object.values(sessionStorage).join());
    const id = /"creationId":"([^"]+)"/.exec(kept)?.[1];
    const making = [
      gate.replace(`HEAD /v1/music/creations/${id}/content`, () => new Response(null, { status: 409 })),
      gate.replaceText('GET /v1/music/creations', '"ready"', '"generating"'),
    ];
    await visitor.context.clearCookies();
    world.network.break();
    await first.button(english.signIn).waitFor();
    audio.release();
    await first.signIn('Ada');
    await first.says(english.beingMade);
    await first.shows(english.afterArrival);
    const second = await first.openTab();
    await second.press(english.play, second.tracks.first());
    await second.shows(english.afterArrival);
    await second.says(english.beingMade);
    for (const each of making) each.giveBack();
    for (const tab of [first, second]) {
      await tab.page.bringToFront();
      await tab.says(english.complete);
      // One pauses as soon as the other one sounds.
      await tab.page.waitForFunction(() => document.querySelector('audio')?.duration === 10);
    }
    expect(upstream.counts().generations).toBe(1);
    expect(await first.unfinished()).toBe(0);
  });

  it('is ordered again under its own key if it had no response, by its own account, and paid for once', async () => {
    await using studio = await openStudio(visit);
    const { page, world, visitor, upstream, gate } = studio;
    visitor.tolerateProblem(/favicon/);
    const accepted = studio.loseResponse();
    await studio.order();
    await accepted;
    for (const [name, unfinished] of [
      ['Grace', 1],
      ['Ada', 0],
    ] as const) {
      await page.goto(`${world.studioUrl}/config.json`);
      await signInBehind(world, visitor, name);
      await page.goto(world.studioUrl);
      await studio.isLoaded();
      if (name === 'Ada') await studio.says(english.complete);
      expect(await studio.unfinished()).toBe(unfinished);
      expect(gate.idempotencyKeys).toHaveLength(2 - unfinished);
    }
    expect(new Set(gate.idempotencyKeys).size).toBe(1);
    expect(upstream.counts().generations).toBe(1);
    await studio.tracks.first().waitFor();
  });
});
