import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, Studio } from './page.ts';

const LIBRARY = '**/api/upstream/v1/music/creations';

describeInChromium('what the studio shows', (visit) => {
  it('changes in another tab as soon as it changes in one', async () => {
    await using first = await openStudio(visit);
    const second = new Studio(await first.visitor.open(first.world.studioUrl));
    await second.isLoaded();
    await first.generate({ prompt: 'Rain' });
    await second.tracks.filter({ hasText: 'Rain' }).waitFor();
    await second.region(english.account).getByText('4,994').waitFor();
    await second.press(english.publish, second.tracks.first());
    await first.button(english.unpublish, first.tracks.first()).waitFor();
  });

  it('is loaded again when the page is seen again, or back in the network', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    for (const [target, type] of [
      ['document', 'visibilitychange'],
      ['window', 'online'],
    ] as const) {
      const request = page.waitForRequest(LIBRARY);
      await page.evaluate(`${target}.dispatchEvent(new Event('${type}'))`);
      await request;
    }
  });

  it('says that it is offline only as long as it is', async () => {
    await using studio = await openStudio(visit);
    const { page, visitor, world } = studio;
    visitor.expectProblem(/ERR_/);
    await visitor.context.setOffline(true);
    world.network.cut();
    await studio.order();
    const offline = page.getByRole('alert').filter({ hasText: english.offline });
    await offline.waitFor();
    world.network.repair();
    await visitor.context.setOffline(false);
    await offline.waitFor({ state: 'detached' });
    await studio.generate();
  });

  it('is no empty activity while that is still loading', async () => {
    await using studio = await openStudio(visit);
    const { page } = studio;
    const { promise, resolve } = Promise.withResolvers<void>();
    studio.world.gate.replace('GET /v1/activity', async (forward) => {
      await promise;
      return forward();
    });
    await page.reload();
    await studio.shows(english.activityLoading);
    expect(await page.getByText(english.noActivity).count()).toBe(0);
    resolve();
    await studio.region(english.account).getByText(english.activitySignIn).waitFor();
    await studio.hides(english.activityLoading);
  });
});

describeInChromium('a shared track that is still being made', (visit) => {
  it('is announced, and can be played by itself when it is complete', async () => {
    await using owner = await openStudio(visit);
    await owner.generate({ prompt: 'Rain', isPublic: true });
    const link = await owner.sharedLink();
    const id = new URL(link).searchParams.get('listen');
    const description = owner.world.gate.replace(`GET /v1/music/public/${id}`, async (forward) => {
      const text = await (await forward()).text();
      return new Response(text.replace('"ready"', '"generating"'));
    });
    await using stranger = await visit();
    const studio = new Studio(await stranger.open(link));
    await studio.shows(english.sharedBeingMade);
    expect(await studio.audio.getAttribute('src')).toBeNull();
    expect(await studio.page.getByText(english.notPlayable).count()).toBe(0);
    description.giveBack();
    await studio.press(english.listen);
    await studio.playsBeyond(0.3);
  });

  it('says that it does not play only to a person who has pressed Listen', async () => {
    await using owner = await openStudio(visit);
    await owner.generate({ isPublic: true });
    const link = await owner.sharedLink();
    const id = new URL(link).searchParams.get('listen');
    owner.world.gate.replace(`GET /v1/music/public/${id}/content`, () => new Response(null, { status: 409 }));
    await using stranger = await visit();
    stranger.tolerateProblem(/409/);
    const studio = new Studio(await stranger.open(link));
    await studio.page.waitForFunction(() => document.querySelector('audio')?.error);
    expect(await studio.page.getByText(english.notPlayable).isVisible()).toBe(false);
    await studio.press(english.listen);
    await studio.shows(english.notPlayable);
  });
});

describeInChromium('a track that runs out of data', (visit) => {
  it('says so until it goes on', async () => {
    await using studio = await openStudio(visit);
    const audio = await studio.orderHeld({ seconds: 12 });
    await studio.playsBeyond(0.3);
    await studio.audio.evaluate((element: HTMLAudioElement) => {
      element.playbackRate = 4;
    });
    await studio.shows(english.stalled);
    audio.release();
    await studio.hides(english.stalled);
  });
});
