import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { hearTrack, isPaidOnce, playsWholeFile } from './heard-track.ts';
import { openStudio, Studio } from './page.ts';

const GENERATION = 'POST /v1/music';

describeInChromium('after a reload, a track that was being made', (visit) => {
  it('is waited for, and plays as soon as it is complete', async () => {
    await using studio = await openStudio(visit);
    studio.visitor.tolerateProblem(/status of 409/);
    const track = await hearTrack(studio, 0.5);
    await track.arrives();
    const making = await studio.staysUnfinished();
    await studio.page.reload();
    track.release();
    await studio.says(english.beingMade);
    await studio.shows(english.afterArrival);
    making.end();
    await studio.says(english.complete);
    await studio.playsBeyond(0.3);
    await playsWholeFile(studio);
    await isPaidOnce(studio);
    expect(await studio.unfinished()).toEqual([]);
  });

  it('says what to press where the browser does not start the sound by itself', async () => {
    await using studio = await openStudio(visit);
    const track = await hearTrack(studio, 0.5);
    await track.arrives();
    await studio.visitor.context.addInitScript(() => {
      const { play } = HTMLMediaElement.prototype;
      HTMLMediaElement.prototype.play = () => {
        HTMLMediaElement.prototype.play = play;
        return Promise.reject(new DOMException('', 'NotAllowedError'));
      };
    });
    await studio.page.reload();
    track.release();
    await studio.shows(english.pressListen);
    await studio.press(english.listen);
    await studio.playsBeyond(0.3);
  });

  it('is ordered again under its own key if there was no response yet, and paid for once', async () => {
    await using studio = await openStudio(visit);
    const { gate } = studio.world;
    const accepted = Promise.withResolvers<void>();
    const lost = gate.replace(GENERATION, async (forward) => {
      await (await forward()).body?.cancel();
      accepted.resolve();
      return new Promise<Response>(() => {});
    });
    await studio.order();
    await accepted.promise;
    lost.giveBack();
    await studio.page.reload();
    await studio.says(english.complete);
    await studio.playsBeyond(0.3);
    expect(gate.idempotencyKeys).toEqual([expect.any(String), gate.idempotencyKeys[0] ?? 'a key']);
    expect(studio.upstream.counts().generations).toBe(1);
    await studio.tracks.first().waitFor();
    expect(await studio.unfinished()).toEqual([]);
  });

  it('is given up, and not looked for again, when it is not there any more', async () => {
    await using studio = await openStudio(visit);
    const track = await hearTrack(studio, 0.5);
    await track.arrives();
    studio.visitor.expectProblem(/status of 404/);
    await studio.refuseFiles();
    await studio.page.reload();
    await studio.says(english.broken);
    expect(await studio.alertText()).toContain(english.gone);
    await studio.shows(english.nothingToPlay);
    expect(await studio.unfinished()).toEqual([]);
    track.release();
  });

  it('is gone on with after a new sign-in when the session had ended', async () => {
    await using studio = await openStudio(visit);
    const { visitor, world } = studio;
    const track = await hearTrack(studio, 0.5);
    await track.arrives();
    visitor.expectProblem(/ERR_/);
    visitor.expectProblem(/status of 401/);
    await visitor.context.clearCookies();
    world.network.break();
    await studio.button(english.signIn).waitFor();
    track.release();
    await studio.signIn('Ada');
    await studio.says(english.complete);
    await studio.playsBeyond(0.3);
    await isPaidOnce(studio);
  });

  it('stays with the account that has ordered it', async () => {
    await using studio = await openStudio(visit);
    const { gate } = studio.world;
    studio.visitor.tolerateProblem(/favicon/);
    const asked = Promise.withResolvers<void>();
    const lost = gate.replace(GENERATION, () => {
      asked.resolve();
      return new Promise<Response>(() => {});
    });
    await studio.order();
    await asked.promise;
    lost.giveBack();
    await studio.returnAs('Grace');
    await studio.isLoaded();
    expect(await studio.unfinished()).toHaveLength(1);
    expect(studio.upstream.counts().generations).toBe(0);
    await studio.returnAs('Ada');
    await studio.says(english.complete);
    expect(studio.upstream.counts().generations).toBe(1);
  });
});

describeInChromium('a track that is being made in another tab', (visit) => {
  it('is opened by its row, waits, and plays as soon as it is complete', async () => {
    await using first = await openStudio(visit);
    first.visitor.tolerateProblem(/status of 409/);
    const audio = await first.orderHeld();
    await first.says(english.arriving);
    const making = await first.staysUnfinished();
    const second = new Studio(await first.visitor.open(first.world.studioUrl));
    await second.isLoaded();
    await second.press(english.play, second.tracks.first());
    await second.shows(english.afterArrival);
    await second.says(english.beingMade);
    making.end();
    await second.says(english.complete);
    await second.playsBeyond(0.3);
    audio.release();
    expect(first.upstream.counts().generations).toBe(1);
  });
});

describeInChromium('several tracks at once', (visit) => {
  it('are ordered without taking the player away, and each can be heard from its row while it arrives', async () => {
    await using studio = await openStudio(visit);
    const player = studio.region(english.player);
    const lines = studio.page.getByRole('list', { name: english.underWay }).getByRole('listitem');
    const audio = await studio.orderHeld({ prompt: 'Rain', seconds: 20 });
    await studio.playsBeyond(0.3);
    await studio.order({ prompt: 'Snow', seconds: 20 });
    await studio.says(`Snow: ${english.arriving}`);
    expect(await lines.count()).toBe(2);
    expect(await player.getByText('Rain').isVisible()).toBe(true);
    await studio.playsBeyond(0.6);

    const snow = studio.tracks.filter({ hasText: 'Snow' });
    await studio.press(english.play, snow);
    await player.getByText('Snow').waitFor();
    await studio.playsBeyond(0.3);
    await studio.press(english.cancel, lines.filter({ hasText: 'Rain' }));
    await studio.says(`Rain: ${english.cancelled}`);
    await studio.playsBeyond(0.6);
    audio.release();
    await studio.says(`Snow: ${english.complete}`);
    await studio.playsToEnd();
    expect(studio.upstream.counts().generations).toBe(2);
  });
});
