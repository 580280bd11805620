import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, Studio, signInBehind } from './page.ts';

/** Keeps the page from checking the session by the clock, so that only what the test does can lead to a check. */
async function stopIntervals(studio: Awaited<ReturnType<typeof openStudio>>): Promise<void> {
  await studio.visitor.context.addInitScript('globalThis.setInterval = () => 0');
  await studio.page.reload();
  await studio.isLoaded();
}

describeInChromium('a tab of the studio, when another account signs in in this browser,', (visit) => {
  it('is emptied and shows that account as soon as the other tab has signed in', async () => {
    await using first = await openStudio(visit);
    await stopIntervals(first);
    await first.generate({ prompt: 'Rain for Ada' });
    await first.prompt.fill('A secret of Ada');
    await first.visitor.context.clearCookies();
    const second = new Studio(await first.visitor.open(first.world.studioUrl));
    await second.signIn('Grace');

    await first.region(english.account).getByText('Grace').waitFor();
    await first.shows(english.otherAccount);
    await first.shows(english.libraryEmpty);
    await first.shows(english.nothingToPlay);
    expect(await first.prompt.inputValue()).toBe('');
    expect(await first.page.getByText('Rain for Ada').count()).toBe(0);
    expect(await first.page.getByRole('status').filter({ hasText: english.complete }).count()).toBe(0);
  });

  it('leaves its session when the other tab signs out', async () => {
    await using first = await openStudio(visit);
    await stopIntervals(first);
    const second = new Studio(await first.visitor.open(first.world.studioUrl));
    await second.isLoaded();
    await second.press(english.signOut);
    await first.button(english.signIn).waitFor();
    expect(await first.alertText()).toContain(english.sessionEnded);
  });

  it('does not charge that account for an order', async () => {
    await using studio = await openStudio(visit);
    await stopIntervals(studio);
    await signInBehind(studio.world, studio.visitor, 'Grace');
    await studio.order({ prompt: 'A song that Ada wants' });
    await studio.shows(english.otherAccount);
    await studio.region(english.account).getByText('Grace').waitFor();
    await studio.isLoaded();
    expect(studio.upstream.counts().generations).toBe(0);
    expect(await studio.prompt.inputValue()).toBe('');
    await studio.generate({ prompt: 'A song that Grace wants' });
  });

  it('does not charge that account for an order that is repeated', async () => {
    await using studio = await openStudio(visit);
    const { gate } = studio.world;
    studio.visitor.expectProblem(/status of 503/);
    await stopIntervals(studio);
    const lost = gate.replace('POST /v1/music', async () => {
      await signInBehind(studio.world, studio.visitor, 'Grace');
      lost.giveBack();
      return new Response(null, { status: 503 });
    });
    await studio.order({ prompt: 'A song that Ada wants' });
    await studio.shows(english.otherAccount);
    await studio.isLoaded();
    expect(gate.idempotencyKeys).toHaveLength(1);
    expect(studio.upstream.counts().generations).toBe(0);
    await studio.generate({ prompt: 'A song that Grace wants' });
    expect(gate.idempotencyKeys).toHaveLength(2);
  });

  it('stops waiting for the track of the account before, when it is online again', async () => {
    await using studio = await openStudio(visit);
    await stopIntervals(studio);
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.3);
    await signInBehind(studio.world, studio.visitor, 'Grace');
    await studio.page.evaluate(() => dispatchEvent(new Event('online')));
    await studio.region(english.account).getByText('Grace').waitFor();
    await studio.shows(english.nothingToPlay);
    await studio.hides(english.cancel);
    expect(await studio.page.getByRole('status').filter({ hasText: /\S/ }).count()).toBe(0);
    audio.release();
    await studio.generate();
  });

  it('never shows a track of one account under the name of the other', async () => {
    await using studio = await openStudio(visit);
    await stopIntervals(studio);
    const audio = await studio.orderHeld({ prompt: 'Rain for Ada' });
    await studio.playsBeyond(0.3);
    const shown = await studio.page.evaluateHandle(() => {
      const seen = new Set<string>();
      const look = () => {
        const name = document.querySelector('[data-part=name]')?.textContent;
        for (const title of document.querySelectorAll('li .title')) seen.add(`${name}: ${title.textContent}`);
      };
      new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
      return seen;
    });
    await signInBehind(studio.world, studio.visitor, 'Grace');
    studio.world.gate.replace('GET /v1/music/creations', () =>
      Response.json({ data: [{ id: 'g1', prompt: 'Snow for Grace' }] }),
    );
    // At the end of the track the page loads the library again, before it has reason to check the session.
    audio.release();
    await studio.tracks.filter({ hasText: 'Snow for Grace' }).waitFor();
    const seen = await shown.evaluate((names) => [...names]);
    expect(seen).toContain('Grace: Snow for Grace');
    expect(seen.filter((each) => /Ada: Snow|Grace: Rain/.test(each))).toEqual([]);
  });
});
