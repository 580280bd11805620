import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio } from './page.ts';

describeInChromium('an order in the studio', (visit) => {
  it('without a clear response is the same attempt when it is sent again, which waits for a network', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, gate } = studio;
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
    await studio.press(english.generate);
    await studio.says(english.held);
    // A sign-out that does not reach the gateway ends nothing.
    await studio.press(english.signOut);
    await offline.waitFor();
    world.network.repair();
    await visitor.context.setOffline(false);
    await offline.waitFor({ state: 'detached' });
    await studio.says(english.complete);
    await studio.tracks.first().waitFor();
    expect(gate.idempotencyKeys).toEqual([expect.any(String), gate.idempotencyKeys[0] ?? 'a key']);
    expect(studio.upstream.counts().generations).toBe(1);
  });

  it('is not waited for when it is stopped, and its track lands in the library; without an id it does not play', async () => {
    await using studio = await openStudio(visit);
    const check = studio.gate.hold('GET /v1/me');
    await studio.order();
    await studio.press(english.stopWaiting);
    await studio.says(english.unsent);
    check.release();
    const order = studio.gate.hold('POST /v1/music');
    const arrived = studio.gate.arrive('POST /v1/music', 1);
    await studio.order();
    await arrived;
    await studio.press(english.stopWaiting);
    await studio.says(english.withdrawn);
    order.release();
    const audio = await studio.orderHeld({ prompt: 'Snow' });
    await studio.playsBeyond(0.1);
    await studio.shows(english.paidFor);
    await studio.press(english.stopListening);
    await studio.says(english.cancelled);
    await studio.shows(english.nothingToPlay);
    expect(await studio.button(english.stopListening).count()).toBe(0);
    expect(await studio.unfinished()).toBe(0);
    audio.release();
    await studio.tracks.filter({ hasText: 'Snow' }).waitFor();

    studio.gate.replace('POST /v1/music', async (forward) => {
      const response = await forward();
      response.headers.delete('x-music-creation-id');
      return response;
    });
    await studio.generate({ seconds: 10 });
    expect(await studio.alert.count()).toBe(0);
    expect(await studio.page.getByText(english.nothingToPlay).isVisible()).toBe(true);
    expect(new Set(studio.gate.idempotencyKeys).size).toBe(3);
  });

  it('waits visibly while four others arrive, and is never sent when it is stopped', async () => {
    await using studio = await openStudio(visit);
    const { gate, lines } = studio;
    const audio = gate.holdAudio(1_000);
    for (const [index, prompt] of ['One', 'Two', 'Three', 'Four', 'Five'].entries()) {
      await studio.order({ prompt });
      const said = index < 4 ? english.arriving : english.queued;
      await lines.nth(index).getByText(said).waitFor();
    }
    await studio.press(english.stopWaiting);
    await studio.says(english.unsent);
    audio.release();
    await lines.nth(3).getByText(english.complete).waitFor();
    expect(gate.idempotencyKeys).toHaveLength(4);
  });

  it('is asked about when an order of the same text is lost, and being sent again', async () => {
    await using studio = await openStudio(visit);
    const { page, gate, visitor } = studio;
    visitor.expectProblem(/status of 503/);
    const failing = gate.replace('POST /v1/music', () => new Response(null, { status: 503 }));
    await studio.order();
    await studio.says(english.orderingAgain);
    await studio.order({ seconds: 4 });
    const dialog = page.getByRole('dialog').filter({ hasText: english.orderAgain });
    await studio.button(english.orderAnother, dialog).waitFor();
    expect(await studio.lines.count()).toBe(1);
    await studio.press(english.orderAnother, dialog);
    await studio.lines.nth(1).waitFor();
    failing.giveBack();
    await studio.tracks.nth(1).waitFor();
    expect(new Set(gate.idempotencyKeys).size).toBe(2);
    expect(studio.upstream.counts().generations).toBe(2);
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
