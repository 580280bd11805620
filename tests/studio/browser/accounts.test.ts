import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium, type Visit } from '../chromium.ts';
import { openStudio, signInBehind } from './page.ts';

/** A page that does not check the session by the clock, so that only what the test does can lead to a check. */
async function openWithoutClock(visit: Visit) {
  const studio = await openStudio(visit);
  await studio.visitor.context.addInitScript('globalThis.setInterval = () => 0');
  await studio.reload();
  return { studio, enter: (name: string) => signInBehind(studio.world, studio.visitor, name) };
}

describeInChromium('a tab of the studio, when another account signs in in this browser,', (visit) => {
  it('is emptied and shows that account as soon as the other tab has signed in', async () => {
    const { studio: first } = await openWithoutClock(visit);
    await using _ = first;
    // Also of what the first tab had asked for when the cookies went.
    first.visitor.tolerateProblem(/ERR_|status of 401/);
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

  it('does not charge that account for an order, or for one that is repeated', async () => {
    const { studio, enter } = await openWithoutClock(visit);
    await using _ = studio;
    const { gate, visitor } = studio;
    await enter('Grace');
    await studio.order({ prompt: 'A song that Ada wants' });
    await studio.shows(english.otherAccount);
    await studio.isLoaded();
    await studio.accountShows('Grace');

    visitor.expectProblem(/status of 503/);
    const lost = gate.replace('POST /v1/music', async () => {
      await enter('Ada');
      lost.giveBack();
      return new Response(null, { status: 503 });
    });
    await studio.order({ prompt: 'A song that Grace wants' });
    await studio.accountShows('Ada');
    await studio.isLoaded();
    await studio.generate({ prompt: 'Another song that Ada wants' });
    // The one that was lost, and the last.
    expect(new Set(gate.idempotencyKeys).size).toBe(2);
    expect(gate.idempotencyKeys).toHaveLength(2);
    expect(studio.upstream.counts().generations).toBe(1);
  });
});
