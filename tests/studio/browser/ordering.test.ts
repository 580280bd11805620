import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio } from './page.ts';

const ORDER = 'POST /v1/music';

describeInChromium('an order in the studio', () => {
  it('without a clear response is the same attempt when it is sent again, which waits for a network', async () => {
    await using studio = await openStudio();
    const { page, world, visitor, gate } = studio;
    void studio.loseResponse(Response.json({ job_id: '7' }, { status: 202 }));
    await studio.order();
    await studio.shows(english.sameAttempt);
    await studio.warns(english.notAudio);
    expect(await studio.lines.count()).toBe(0);

    visitor.expectProblem(/ERR_/);
    await visitor.context.setOffline(true);
    world.network.cut();
    const offline = studio.alert.filter({ hasText: english.offline });
    await studio.press(english.generate);
    await studio.says(english.held);
    await studio.press(english.stopWaiting);
    await studio.says(english.unsent);
    // A sign-out that does not reach the gateway ends nothing.
    await studio.press(english.signOut);
    await offline.waitFor();
    // Nor does a look at the page, or an order, end what the notice says.
    const seen = await page.evaluate(() => {
      document.dispatchEvent(new Event('visibilitychange'));
      return document.querySelector('[role="alert"]')?.textContent;
    });
    expect(seen).toContain(english.offline);
    await studio.press(english.generate);
    await studio.says(english.held);
    expect(await offline.count()).toBe(1);
    world.network.repair();
    await visitor.context.setOffline(false);
    await offline.waitFor({ state: 'detached' });
    await studio.says(english.complete);
    await studio.tracks.first().waitFor();
    expect(gate.idempotencyKeys).toEqual([expect.any(String), gate.idempotencyKeys[0] ?? 'a key']);
    expect(studio.upstream.counts().generations).toBe(1);
  });

  it('is not waited for when it is stopped, and its track lands in the library', async () => {
    await using studio = await openStudio();
    const order = studio.gate.hold(ORDER);
    await studio.order();
    await order.arrived;
    await studio.press(english.stopWaiting);
    await studio.says(english.withdrawn);
    order.release();
    const audio = await studio.orderHeld({ prompt: 'Snow' });
    await studio.playsBeyond(0.1);
    await studio.shows(english.paidFor);
    await studio.press(english.stopListening);
    await studio.says(english.cancelled);
    await studio.shows(english.nothingToPlay);
    expect(await studio.unfinished()).toBe(0);
    audio.release();
    await studio.tracks.filter({ hasText: 'Snow' }).waitFor();
  });

  it('stands once in another tab too: in the library, or where it is waited for', async () => {
    await using first = await openStudio();
    const { page, gate } = first;
    const audio = await first.orderHeld({ prompt: 'Snow' });
    await first.says(english.arriving);
    const kept = await page.evaluate(() => Object.values(sessionStorage).join());
    const path = 'GET /v1/music/creations';
    const id = /"creationId":"([^"]+)"/.exec(kept)?.[1];
    // The sandbox of the tests has made it already.
    const unfinished = [path, `${path}/${id}`].map((call) =>
      gate.replace(call, async (forward) => {
        const records = await (await forward()).text();
        const headers = { 'content-type': 'application/json' };
        return new Response(records.replaceAll('"ready"', '"generating"'), { headers });
      }),
    );
    const second = await first.openTab();
    const row = second.tracks.filter({ hasText: 'Snow' });
    await row.getByText(english.generating).waitFor();
    expect(await second.lines.count()).toBe(0);
    // It needs no other look at what the upstream has.
    const list = gate.hold(path);
    await second.press(english.play, row);
    await second.says(english.beingMade);
    expect([await second.tracks.count(), await second.lines.count()]).toEqual([0, 1]);
    for (const each of unfinished) each.giveBack();
    list.release();
    audio.release();
    await row.waitFor();
    await second.says(english.complete);
    await second.lines.first().waitFor({ state: 'detached' });
    expect(await second.tracks.count()).toBe(1);
  });

  it('is asked about when an order of the same text is lost, and being sent again', async () => {
    await using studio = await openStudio();
    const { gate, visitor } = studio;
    visitor.expectProblem(/status of 503/);
    const failing = gate.replace(ORDER, () => new Response(null, { status: 503 }));
    await studio.order();
    await studio.says(english.orderingAgain);
    await studio.order({ seconds: 4 });
    await studio.shows(english.orderAgain);
    expect(await studio.lines.count()).toBe(1);
    await studio.press(english.orderAnother);
    await studio.lines.nth(1).waitFor();
    failing.giveBack();
    await studio.tracks.nth(1).waitFor();
    expect(new Set(gate.idempotencyKeys).size).toBe(2);
    expect(studio.upstream.counts().generations).toBe(2);
  });

  it('is not charged to another account that has signed in since, also when it is repeated', async () => {
    await using studio = await openStudio();
    const { gate, visitor } = studio;
    // Another person of the same name.
    const other = gate.replace('GET /v1/me', () => Response.json({ id: 'another', name: 'Ada' }));
    await studio.order({ prompt: 'A song that Ada wants' });
    await studio.shows(english.otherAccount);
    other.giveBack();
    await studio.signInBehind('Grace');
    await studio.reload();
    await studio.accountShows('Grace');

    visitor.expectProblem(/status of 503/);
    const lost = gate.replace(ORDER, async () => {
      await studio.signInBehind('Ada');
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

  it('whose track arrives is heard after a new sign-in as far as it is made, and is whole in the end', async () => {
    await using studio = await openStudio();
    const { page, gate, world, visitor, upstream } = studio;
    visitor.expectProblem(/ERR_/);
    visitor.expectProblem(/status of 401/);
    const audio = await studio.orderHeld();
    await studio.says(english.arriving);
    const kept = await page.evaluate(() => Object.values(sessionStorage).join());
    const id = /"creationId":"([^"]+)"/.exec(kept)?.[1];
    const made = Promise.withResolvers<void>();
    let slices = 0;
    // The gateway's first two slices are enough to play.
    gate.replace(`GET /v1/music/creations/${id}/content`, (forward) =>
      slices++ < 2 ? forward() : made.promise.then(forward),
    );
    await visitor.context.clearCookies();
    world.network.break();
    await studio.button(english.signIn).waitFor();
    audio.release();
    await studio.signIn('Ada');
    await studio.says(english.arriving);
    await page.waitForFunction(() => (document.querySelector('audio')?.currentTime ?? 0) > 0);
    made.resolve();
    await studio.says(english.complete);
    await page.waitForFunction(() => Math.round(document.querySelector('audio')?.currentTime ?? 0) === 10);
    expect(upstream.counts().generations).toBe(1);
    expect(await studio.unfinished()).toBe(0);
  });

  it('is sent again after a reload under its own key if it had no response, by its own account', async () => {
    await using studio = await openStudio();
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
      await studio.signInBehind(name);
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
