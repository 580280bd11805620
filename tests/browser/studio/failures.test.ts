import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { startDemoWorld } from '../../support/demo-world.ts';
import {
  alertText,
  button,
  ENOUGH_TO_PLAY,
  generate,
  openSignedIn,
  order,
  playedBeyond,
  said,
  tracks,
} from './page.ts';

const GENERATION = 'POST /v1/music';

/** An upstream's refusals of a generation, and what the studio advises then. */
const REFUSALS = [
  [403, 'This account may not generate', english.later],
  [422, 'The prompt names a living artist', english.later],
  [429, 'Too many at once', english.later],
] as const;

describeInChromium('when something fails, the studio', (visit) => {
  it('says that the connection is gone, and the retry after it is the same attempt', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await openSignedIn(visitor, world);
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
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await openSignedIn(visitor, world);
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 10 });
    await playedBeyond(page, 0.3);
    await button(page, 'Cancel').click();
    await said(page, english.cancelled);
    expect(await button(page, 'Cancel').isVisible()).toBe(false);
    audio.release();
    await tracks(page).first().waitFor();
    expect(await page.getByRole('alert').filter({ hasText: /\S/ }).count()).toBe(0);
    await generate(page, { seconds: 10 });
    expect(new Set(world.gate.idempotencyKeys).size).toBe(2);
  });

  it('says what a track costs and what is left, and what to do', async () => {
    await using world = await startDemoWorld({ startingBalance: 5 });
    await using visitor = await visit();
    const page = await openSignedIn(visitor, world);
    visitor.expectProblem(/status of 402/);
    await order(page, { seconds: 30 });
    const text = await alertText(page);
    expect(text).toMatch(/costs \d+ credits; 5 are left/);
    expect(text).toContain(english.noCredits);
  });

  it('tells what the upstream says when it refuses, and what to do', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await openSignedIn(visitor, world);
    for (const [status, message, advice] of REFUSALS) {
      const fault = world.gate.replace(GENERATION, () => Response.json({ error: { message } }, { status }));
      visitor.expectProblem(new RegExp(`status of ${status}`));
      await order(page);
      const alert = page.getByRole('alert').filter({ hasText: message }).filter({ hasText: advice });
      await alert.waitFor();
      fault.giveBack();
    }
    await generate(page);
    expect(await page.getByRole('alert').filter({ hasText: /\S/ }).count()).toBe(0);
    expect(world.upstream.counts().generations).toBe(1);
  });

  it('tells when a track broke off, and that it is paid for', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await openSignedIn(visitor, world);
    const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
    await order(page, { seconds: 10 });
    await playedBeyond(page, 0.3);
    visitor.expectProblem(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    world.upstreamNetwork.break();
    await said(page, english.broken);
    expect(await alertText(page)).toContain(english.interrupted);
    audio.release();
    await button(tracks(page).first(), 'Play').click();
    await playedBeyond(page, 0.3);
  });

  it('says that the upstream cannot be reached, without its address', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await openSignedIn(visitor, world);
    await world.upstreamNetwork[Symbol.asyncDispose]();
    visitor.expectProblem(/status of 502/);
    await order(page);
    const text = await alertText(page);
    expect(text).toContain(english.later);
    expect(text).not.toContain('127.0.0.1');
  });

  it('advises to look before trying again when the upstream has failed in the middle', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await openSignedIn(visitor, world);
    world.gate.replace(GENERATION, () => Response.json({ error: { message: 'Crashed' } }, { status: 500 }));
    visitor.expectProblem(/status of 500/);
    await order(page);
    expect(await alertText(page)).toContain(english.uncertain);
  });

  it('advises to look before trying again when the generation took too long', async () => {
    await using world = await startDemoWorld({ environment: { TIMEOUT_STREAM_MS: '400' } });
    await using visitor = await visit();
    const page = await openSignedIn(visitor, world);
    world.gate.replace(GENERATION, () => new Promise(() => {}));
    visitor.expectProblem(/status of 502/);
    await order(page);
    expect(await alertText(page)).toContain(english.uncertain);
  });
});
