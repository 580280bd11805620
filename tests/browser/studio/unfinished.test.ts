import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium, type Visit } from '../chromium.ts';
import { openStudio } from './page.ts';

/** A studio with a track of which a part has arrived. */
async function openArriving(visit: Visit) {
  const studio = await openStudio(visit);
  const audio = await studio.orderHeld();
  await studio.says(english.arriving);
  return { studio, audio };
}

describeInChromium('a track that was being made before a reload', (visit) => {
  it('is waited for, also in another tab, and plays in both as soon as it is complete', async () => {
    const { studio, audio } = await openArriving(visit);
    await using first = studio;
    first.visitor.tolerateProblem(/status of 409/);
    const making = await first.staysUnfinished();
    await first.page.reload();
    audio.release();
    await first.says(english.beingMade);
    await first.shows(english.afterArrival);
    const second = await first.openTab();
    await second.press(english.play, second.tracks.first());
    await second.shows(english.afterArrival);
    await second.says(english.beingMade);
    making.end();
    for (const tab of [first, second]) {
      await tab.page.bringToFront();
      await tab.says(english.complete);
      await tab.playsBeyond(0.3);
    }
    expect(await first.audio.evaluate(({ duration }: HTMLAudioElement) => duration)).toBe(10);
    expect(first.upstream.counts().generations).toBe(1);
    expect(await first.unfinished()).toBe(0);
  });

  it('is ordered again under its own key if there was no response yet, and paid for once', async () => {
    await using studio = await openStudio(visit);
    const { idempotencyKeys } = studio.gate;
    const accepted = studio.loseResponse();
    await studio.order();
    await accepted;
    await studio.page.reload();
    await studio.says(english.complete);
    await studio.playsBeyond(0.3);
    expect(idempotencyKeys).toEqual([expect.any(String), idempotencyKeys[0] ?? 'a key']);
    expect(studio.upstream.counts().generations).toBe(1);
    await studio.tracks.first().waitFor();
    expect(await studio.unfinished()).toBe(0);
  });

  it('is given up, and not looked for again, when it is not there any more', async () => {
    const { studio, audio } = await openArriving(visit);
    await using _ = studio;
    await studio.refuseFiles();
    await studio.page.reload();
    await studio.says(english.broken);
    await studio.warns(english.gone);
    await studio.shows(english.nothingToPlay);
    expect(await studio.unfinished()).toBe(0);
    audio.release();
  });

  it('is gone on with after a new sign-in when the session had ended', async () => {
    const { studio, audio } = await openArriving(visit);
    await using _ = studio;
    const { visitor, world } = studio;
    visitor.expectProblem(/ERR_/);
    visitor.expectProblem(/status of 401/);
    await visitor.context.clearCookies();
    world.network.break();
    await studio.button(english.signIn).waitFor();
    audio.release();
    await studio.signIn('Ada');
    await studio.says(english.complete);
    await studio.playsBeyond(0.3);
    expect(studio.upstream.counts().generations).toBe(1);
  });
});
