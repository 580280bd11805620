import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { hearTrack, isPaidOnce } from './heard-track.ts';
import { openStudio, Studio } from './page.ts';

const GENERATION = 'POST /v1/music';
/** A track of 24 s then takes 6 s. */
const PACE = 4;

describeInChromium('after a reload, a track that was being made', (visit) => {
  it('is waited for, and plays as soon as it is complete', async () => {
    await using studio = await openStudio(visit, { pace: PACE });
    studio.visitor.tolerateProblem(/status of 409/);
    const track = await hearTrack(studio, 0.5);
    await track.arrives();
    await studio.page.reload();
    track.release();
    await studio.says(english.beingMade);
    await studio.shows(english.afterArrival);
    await studio.says(english.complete);
    await studio.playsBeyond(0.3);
    await isPaidOnce(studio);
    expect(await studio.unfinished()).toEqual([]);
  });

  it('says what to press where the browser does not start the sound by itself', async () => {
    await using studio = await openStudio(visit, { pace: PACE });
    studio.visitor.tolerateProblem(/status of 409/);
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
    await using first = await openStudio(visit, { pace: PACE });
    first.visitor.tolerateProblem(/status of 409/);
    const audio = await first.orderHeld({ seconds: 24 });
    await first.says(english.arriving);
    const second = new Studio(await first.visitor.open(first.world.studioUrl));
    await second.isLoaded();
    await second.press(english.play, second.tracks.first());
    await second.shows(english.afterArrival);
    await second.says(english.beingMade);
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
