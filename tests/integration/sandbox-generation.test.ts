/** The sandbox's generations: audio before the end, completion without the caller, Idempotency-Key. */

import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import type { Sandbox } from '../../src/demo/sandbox/sandbox.ts';
import { ORDER, openAccount, startTestSandbox } from '../support/sandbox-account.ts';

const HOUR_SECONDS = 3_600;

let sandbox: Sandbox;
let slow: Sandbox;
let elapsedMs = 0;
beforeAll(async () => {
  sandbox = await startTestSandbox({ startingBalance: 20 });
  // The clock stands still unless a test moves it, and at this pace three seconds of music take an hour.
  slow = await startTestSandbox({
    startingBalance: 20,
    pace: 3 / HOUR_SECONDS,
    accessTokenSeconds: 24 * HOUR_SECONDS,
    now: () => elapsedMs,
  });
});
afterAll(async () => {
  await Promise.all([sandbox.stop(), slow.stop()]);
});

function idsOf({ headers }: Response) {
  return { generation: headers.get('x-generation-id'), creation: headers.get('x-music-creation-id') };
}

/** The first piece of the body; the rest is not waited for. */
async function firstPiece(response: Response): Promise<Uint8Array | undefined> {
  const reader = response.body?.getReader();
  const piece = await reader?.read();
  await reader?.cancel();
  return piece?.value;
}

describe('upstream, a generation under way', () => {
  it('sends audio before it is complete, and is finished without its caller', async () => {
    const account = await openAccount(slow, 'impatient');
    const response = await account.generate(ORDER);
    const path = `/v1/music/creations/${idsOf(response).creation}`;

    expect((await firstPiece(response))?.length).toBeGreaterThan(44);

    expect(await account.read(path)).toMatchObject({ status: 'generating' });
    expect((await account.request(`${path}/content`)).status).toBe(409);
    elapsedMs += HOUR_SECONDS * 1_000 - 1;
    expect(await account.read(path)).toMatchObject({ status: 'generating' });
    elapsedMs += 1;
    expect(await account.read(path)).toMatchObject({ status: 'ready' });
    expect((await account.request(`${path}/content`)).status).toBe(200);
  });

  it('is ready by the time its last byte has arrived, whatever the clock says', async () => {
    const brisk = await startTestSandbox({ pace: 100, now: () => 0 });
    try {
      const account = await openAccount(brisk, 'patient');
      await (await account.generate(ORDER)).arrayBuffer();
      expect(await account.read('/v1/music/creations')).toMatchObject([{ status: 'ready' }]);
    } finally {
      await brisk.stop();
    }
  });

  it('is given again for its key, charged once', async () => {
    const account = await openAccount(slow, 'doubled');
    const before = slow.upstream.counts().generations;
    const [first, second] = await Promise.all([
      account.generate(ORDER, 'key'),
      account.generate(ORDER, 'key'),
    ]);

    expect(idsOf(second)).toEqual(idsOf(first));
    expect(await firstPiece(second)).toEqual(await firstPiece(first));
    expect(await account.read('/v1/music/creations')).toMatchObject([{ status: 'generating' }]);
    expect(await account.credits()).toBe(17);
    expect(slow.upstream.counts().generations).toBe(before + 1);
  });
});

describe('upstream, Idempotency-Key', () => {
  it('gives a creation that was finished without its caller, all of it at once', async () => {
    const account = await openAccount(slow, 'back again');
    const first = await account.generate(ORDER, 'key');
    await firstPiece(first);
    elapsedMs += HOUR_SECONDS * 1_000;

    const second = await account.generate(ORDER, 'key');

    expect(idsOf(second)).toEqual(idsOf(first));
    expect((await second.bytes()).length).toBe(144_044);
  });

  it('gives a finished creation again, charged once', async () => {
    const account = await openAccount(sandbox, 'retry');
    const first = await account.generate(ORDER, 'key');
    const audio = await first.bytes();

    const second = await account.generate(ORDER, 'key');

    expect(idsOf(second)).toEqual(idsOf(first));
    expect(await second.bytes()).toEqual(audio);
    expect(await account.credits()).toBe(17);
    expect(await account.read('/v1/music/creations')).toHaveLength(1);
  });

  it('refuses the same key with another order', async () => {
    const account = await openAccount(sandbox, 'mixed-up');
    await firstPiece(await account.generate(ORDER, 'key'));
    expect((await account.generate({ ...ORDER, prompt: 'Another' }, 'key')).status).toBe(422);
    expect(await account.credits()).toBe(17);
  });

  it('keeps other keys, other accounts and orders without a key apart', async () => {
    const [one, two] = [await openAccount(sandbox, 'one'), await openAccount(sandbox, 'two')];
    const responses = [
      await one.generate(ORDER, 'key'),
      await two.generate(ORDER, 'key'),
      await one.generate(ORDER, 'other key'),
      await one.generate(ORDER),
      await one.generate(ORDER),
    ];
    expect(new Set(responses.map((response) => idsOf(response).creation)).size).toBe(5);
    await Promise.all(responses.map(firstPiece));
    expect([await one.credits(), await two.credits()]).toEqual([8, 17]);
  });
});
