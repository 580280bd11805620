import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import type { LiveMessage } from '../../../src/demo/studio/live-audio.ts';
import { describeInChromium } from '../../support/chromium.ts';
import {
  alertText,
  button,
  ENOUGH_TO_PLAY,
  generate,
  openStudio,
  order,
  playedBeyond,
  said,
  tracks,
} from './page.ts';

const GENERATION = 'POST /v1/music';

/** What an upstream may respond to an order, and what the studio shows then. */
const REFUSALS = [
  [403, 'This account may not generate', `This account may not generate${english.later}`],
  [422, 'The prompt names a living artist', `The prompt names a living artist${english.later}`],
  [429, 'Too many at once', `Too many at once${english.later}`],
  [500, 'Crashed', english.uncertain],
] as const;

describeInChromium('the studio, when something fails,', (visit) => {
  it('says that the connection is gone, and the retry after it is the same attempt', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 10 });
    await playedBeyond(page, 0.3);

    visitor.expectProblem(/ERR_/);
    await visitor.context.setOffline(true);
    world.network.cut();
    await said(page, english.broken);
    expect(await alertText(page)).toContain(english.interrupted);
    await button(page, 'Generate').click();
    await page.getByRole('alert').filter({ hasText: english.offline }).waitFor();

    audio.release();
    world.network.mend();
    await visitor.context.setOffline(false);
    await page.getByText(english.sameAttempt).waitFor();
    await button(page, 'Generate').click();
    await said(page, english.complete);
    const [first, second] = world.gate.idempotencyKeys;
    expect(world.gate.idempotencyKeys).toHaveLength(2);
    expect(second).toBe(first ?? 'a key');
    expect(world.upstream.counts().generations).toBe(1);
    await tracks(page).first().waitFor();

    await generate(page, { seconds: 10 });
    expect(new Set(world.gate.idempotencyKeys).size).toBe(2);
    expect(world.upstream.counts().generations).toBe(2);
  });

  it('stops waiting with Cancel, and the track that was begun lands in the library', async () => {
    await using studio = await openStudio(visit);
    const { world, page } = studio;
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 10 });
    await playedBeyond(page, 0.3);
    await button(page, 'Cancel').click();
    await said(page, english.cancelled);
    await page.getByText(english.nothingToPlay).waitFor();
    expect(await button(page, 'Cancel').isVisible()).toBe(false);
    audio.release();
    await tracks(page).first().waitFor();
    expect(await page.getByRole('alert').filter({ hasText: /\S/ }).count()).toBe(0);
    await generate(page, { seconds: 10 });
    expect(new Set(world.gate.idempotencyKeys).size).toBe(2);
  });

  it('says what a track costs and what is left, and what to do', async () => {
    await using studio = await openStudio(visit, { startingBalance: 5 });
    const { visitor, page } = studio;
    visitor.expectProblem(/status of 402/);
    await order(page, { seconds: 30 });
    const text = await alertText(page);
    expect(text).toMatch(/costs \d+ credits; 5 are left/);
    expect(text).toContain(english.noCredits);
    expect(await page.getByRole('status').filter({ hasText: /\S/ }).count()).toBe(0);
    expect(await page.getByText(english.sameAttempt).count()).toBe(0);
  });

  it('shows what the upstream says when it refuses an order, and what to do', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    for (const [status, message, shown] of REFUSALS) {
      const fault = world.gate.replace(GENERATION, () => Response.json({ error: { message } }, { status }));
      visitor.expectProblem(new RegExp(`status of ${status}`));
      await order(page);
      const alert = page.getByRole('alert').filter({ hasText: shown.slice(0, 12) });
      expect((await alert.textContent())?.replace(/\n\s*/g, '')).toBe(shown);
      fault.giveBack();
    }
    await generate(page);
    expect(await page.getByRole('alert').filter({ hasText: /\S/ }).count()).toBe(0);
    expect(world.upstream.counts().generations).toBe(1);
  });

  it('says that a track broke off, and that it is paid for', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 10 });
    await playedBeyond(page, 0.3);
    visitor.expectProblem(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    const steps = await page.evaluateHandle(() => {
      const kinds: string[] = [];
      const worker = navigator.serviceWorker.controller;
      const post = worker?.postMessage.bind(worker);
      Object.assign(worker ?? {}, {
        postMessage(message: LiveMessage) {
          kinds.push(message.kind);
          post?.(message);
        },
      });
      return kinds;
    });
    world.upstreamNetwork.break();
    await said(page, english.broken);
    expect(await alertText(page)).toContain(english.interrupted);
    await page.getByText(english.nothingToPlay).waitFor();
    expect((await steps.jsonValue()).at(-1)).toBe('break');
    audio.release();
    await button(tracks(page).first(), 'Play').click();
    await playedBeyond(page, 0.3);
  });

  it('receives a track that the upstream gives no id, which is in the library only', async () => {
    await using studio = await openStudio(visit);
    const { world, page } = studio;
    world.gate.replace(GENERATION, async (forward) => {
      const response = await forward();
      response.headers.delete('x-music-creation-id');
      return response;
    });
    await generate(page);
    expect(await page.getByText(english.nothingToPlay).isVisible()).toBe(true);
  });

  it('stays signed in when the sign-out does not reach the gateway', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    visitor.expectProblem(/ERR_/);
    world.network.cut();
    await button(page, english.signOut).click();
    expect(await alertText(page)).toContain(english.unreachable);
    expect(await button(page, english.signOut).isVisible()).toBe(true);
  });

  it('says that the upstream cannot be reached, without its address', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    await world.upstreamNetwork[Symbol.asyncDispose]();
    visitor.expectProblem(/status of 502/);
    await order(page);
    const text = await alertText(page);
    expect(text).toContain(english.later);
    expect(text).not.toContain('127.0.0.1');
  });

  it('advises to look before trying again when the generation took too long', async () => {
    await using studio = await openStudio(visit, { environment: { TIMEOUT_STREAM_MS: '400' } });
    const { world, visitor, page } = studio;
    world.gate.replace(GENERATION, () => new Promise(() => {}));
    visitor.expectProblem(/status of 502/);
    await order(page);
    expect(await alertText(page)).toContain(english.uncertain);
  });
});
