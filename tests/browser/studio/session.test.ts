import { expect, it } from 'bun:test';
import type { Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import {
  alertText,
  button,
  ENOUGH_TO_PLAY,
  generate,
  loaded,
  openStudio,
  order,
  playedBeyond,
  region,
  said,
  tracks,
} from './page.ts';

/** The lines about renewals, in the region Session. */
function renewals(page: Page) {
  return region(page, english.session).getByText(/^Refreshed at \d/);
}

describeInChromium('a session in the studio', (visit) => {
  it('generates with an expired access token after one refresh, and says so', async () => {
    await using studio = await openStudio(visit);
    const { world, page } = studio;
    expect(await renewals(page).count()).toBe(0);
    world.upstream.expireAccessTokens();
    await generate(page);
    await playedBeyond(page, 0.3);
    await renewals(page).first().waitFor();
    expect(await renewals(page).count()).toBe(1);
    expect(world.upstream.counts()).toMatchObject({ refreshes: 1, refusedRefreshes: 0, generations: 1 });
  });

  it('lasts while a track arrives whose access token expires, and is refreshed once after it', async () => {
    await using studio = await openStudio(visit);
    const { world, page } = studio;
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 10 });
    await playedBeyond(page, 0.3);
    world.upstream.expireAccessTokens();
    audio.release();
    await said(page, english.complete);
    await tracks(page).first().waitFor();
    await region(page, english.account).getByText('4,980').waitFor();
    await renewals(page).first().waitFor();
    expect(await renewals(page).count()).toBe(1);
    expect(world.upstream.counts()).toMatchObject({ refreshes: 1, refusedRefreshes: 0 });
  });

  it('is refreshed once for two tabs that load everything at once with an expired pair', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page: first } = studio;
    const second = await visitor.open(world.studioUrl);
    await loaded(second);
    world.upstream.expireAccessTokens();
    // The first to refresh waits for the other's call, so that both are under way with the same spent pair.
    const bothHaveAsked = world.gate.arrive('GET /v1/me', 2);
    world.gate.replace('POST /v1/auth/refresh', async (forward) => {
      await bothHaveAsked;
      return forward();
    });
    await Promise.all([first.reload(), second.reload()]);
    for (const page of [first, second]) {
      await region(page, english.session).getByText('Ada').waitFor();
      await loaded(page);
    }
    expect(world.upstream.counts()).toMatchObject({ refreshes: 1, refusedRefreshes: 0 });
    await generate(first);
    await generate(second);
    expect(world.upstream.counts()).toMatchObject({ refreshes: 1, generations: 2 });
  });

  it('ends in the other tab too after Sign out, as its next call finds', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page: first } = studio;
    const second = await visitor.open(world.studioUrl);
    await button(second, 'Generate').waitFor();
    await button(first, 'Sign out').click();
    await button(first, 'Sign in').waitFor();
    visitor.expectProblem(/status of 401/);
    await order(second);
    expect(await alertText(second)).toContain(english.sessionEnded);
    await button(second, 'Sign in').waitFor();
    expect(world.upstream.counts().generations).toBe(0);
  });
});
