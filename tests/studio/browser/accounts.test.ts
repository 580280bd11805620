import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium, type Visit } from '../chromium.ts';
import { openStudio, signInBehind } from './page.ts';

/** A page that does not check the session by the clock, so that only what the test does can lead to a check. */
async function openWithoutClock(visit: Visit) {
  const studio = await openStudio(visit);
  await studio.visitor.context.addInitScript('globalThis.setInterval = () => 0');
  await studio.reload();
  return { studio, enter: () => signInBehind(studio.world, studio.visitor, 'Grace') };
}

describeInChromium('a tab of the studio, when another account signs in in this browser,', (visit) => {
  it('is emptied and shows that account as soon as the other tab has signed in', async () => {
    const { studio: first } = await openWithoutClock(visit);
    await using _ = first;
    first.visitor.tolerateProblem(/ERR_/);
    await first.generate({ prompt: 'Rain for Ada' });
    const audio = await first.orderHeld({ prompt: 'Snow for Ada' });
    await first.playsBeyond(0.3);
    await first.prompt.fill('A secret of Ada');
    await first.visitor.context.clearCookies();
    await (await first.openTab()).signIn('Grace');

    await first.accountShows('Grace');
    for (const text of [english.otherAccount, english.libraryEmpty, english.nothingToPlay])
      await first.shows(text);
    expect(await first.lines.count()).toBe(0);
    expect(await first.prompt.inputValue()).toBe('');
    expect(await first.page.getByText('for Ada').count()).toBe(0);
    expect(await first.page.getByRole('status').filter({ hasText: /\S/ }).count()).toBe(0);
    audio.release();
  });

  it.each(['an order', 'an order that is repeated'])('does not charge that account for %s', async (what) => {
    const { studio, enter } = await openWithoutClock(visit);
    await using _ = studio;
    const { gate } = studio;
    const isRepeated = what !== 'an order';
    if (isRepeated) {
      studio.visitor.expectProblem(/status of 503/);
      const lost = gate.replace('POST /v1/music', async () => {
        await enter();
        lost.giveBack();
        return new Response(null, { status: 503 });
      });
    } else await enter();
    await studio.order({ prompt: 'A song that Ada wants' });
    await studio.shows(english.otherAccount);
    await studio.isLoaded();
    await studio.accountShows('Grace');
    await studio.generate({ prompt: 'A song that Grace wants' });
    expect(gate.idempotencyKeys).toHaveLength(isRepeated ? 2 : 1);
    expect(new Set(gate.idempotencyKeys).size).toBe(gate.idempotencyKeys.length);
    expect(studio.upstream.counts().generations).toBe(1);
  });
});
