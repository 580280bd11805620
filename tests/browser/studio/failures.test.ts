import { expect, it } from 'bun:test';
import type { LiveMessage } from '../../../src/client/live-audio/live-audio.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio } from './page.ts';

const GENERATION = 'POST /v1/music';

describeInChromium('the studio, when something fails,', (visit) => {
  it('says when there was no clear response, and the retry after it is the same attempt', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    const keys = world.gate.idempotencyKeys;
    visitor.expectProblem(/status of 500/);
    const lost = world.gate.replace(GENERATION, async (forward) => {
      await (await forward()).body?.cancel();
      return new Response(null, { status: 500 });
    });
    await studio.order({ seconds: 10 });
    await studio.shows(english.sameAttempt);
    expect(await studio.alertText()).toContain(english.uncertain);

    lost.giveBack();
    visitor.expectProblem(/ERR_/);
    await visitor.context.setOffline(true);
    world.network.cut();
    await studio.press(english.generate);
    await page.getByRole('alert').filter({ hasText: english.offline }).waitFor();
    world.network.repair();
    await visitor.context.setOffline(false);
    await studio.shows(english.sameAttempt);
    await studio.press(english.generate);
    await studio.says(english.complete);
    expect(keys).toEqual([expect.any(String), keys[0] ?? 'a key']);
    expect(studio.upstream.counts().generations).toBe(1);
    await studio.tracks.first().waitFor();

    await studio.generate({ seconds: 10 });
    expect(new Set(keys).size).toBe(2);
    expect(studio.upstream.counts().generations).toBe(2);
  });

  it('stops waiting with Cancel, and the track that was begun lands in the library', async () => {
    await using studio = await openStudio(visit);
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.3);
    await studio.press(english.cancel);
    await studio.says(english.cancelled);
    await studio.shows(english.nothingToPlay);
    expect(await studio.button(english.cancel).isVisible()).toBe(false);
    audio.release();
    await studio.tracks.first().waitFor();
    expect(await studio.page.getByRole('alert').filter({ hasText: /\S/ }).count()).toBe(0);
    await studio.generate({ seconds: 10 });
    expect(new Set(studio.world.gate.idempotencyKeys).size).toBe(2);
  });

  it('says why an order was refused and what to do, and plays no track that has no id', async () => {
    await using studio = await openStudio(visit, { startingBalance: 10 });
    const { world, visitor, page } = studio;
    const alert = page.getByRole('alert').filter({ hasText: /\S/ });
    const refuseWith = (message: string, status: number) =>
      world.gate.replace(GENERATION, () => Response.json({ error: { message } }, { status }));
    visitor.expectProblem(/status of 402/);
    await studio.order({ seconds: 30 });
    await alert.filter({ hasText: english.noCredits }).waitFor();
    expect(await studio.alertText()).not.toContain('are left');
    expect(await page.getByRole('status').filter({ hasText: /\S/ }).count()).toBe(0);
    expect(await page.getByText(english.sameAttempt).count()).toBe(0);

    visitor.expectProblem(/status of 500/);
    refuseWith('Crashed', 500);
    await studio.order();
    await alert.filter({ hasText: english.uncertain }).waitFor();
    expect(await studio.alertText()).not.toContain('Crashed');

    visitor.expectProblem(/status of 422/);
    refuseWith('The prompt names a living artist', 422);
    await studio.order();
    await alert.filter({ hasText: english.later }).waitFor();
    expect(await studio.alertText()).toContain('The prompt names a living artist');

    world.gate.replace(GENERATION, async (forward) => {
      const response = await forward();
      response.headers.delete('x-music-creation-id');
      return response;
    });
    await studio.generate();
    expect(await alert.count()).toBe(0);
    expect(await page.getByText(english.nothingToPlay).isVisible()).toBe(true);
    expect(studio.upstream.counts().generations).toBe(1);
  });

  it('says that a track broke off whose rest is refused, and that it is paid for', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    const audio = await studio.orderHeld();
    await studio.playsBeyond(0.3);
    visitor.expectProblem(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    visitor.expectProblem(/status of 404/);
    const refusal = await studio.refuseFiles();
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
    await studio.says(english.broken);
    expect(await studio.alertText()).toContain(english.interrupted);
    await studio.shows(english.nothingToPlay);
    expect((await steps.jsonValue()).at(-1)).toBe('break');
    audio.release();
    await refusal.end();
    await studio.press(english.play, studio.tracks.first());
    await studio.playsBeyond(0.3);
  });

  it('says that the upstream cannot be reached, without its address, and stays signed in', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor } = studio;
    await world.upstreamNetwork[Symbol.asyncDispose]();
    visitor.expectProblem(/status of 502/);
    await studio.order();
    const text = await studio.alertText();
    expect(text).toContain(english.later);
    expect(text).not.toContain('127.0.0.1');

    visitor.expectProblem(/ERR_/);
    world.network.cut();
    await studio.press(english.signOut);
    await studio.page.getByRole('alert').filter({ hasText: english.unreachable }).waitFor();
    expect(await studio.button(english.signOut).isVisible()).toBe(true);
  });
});
