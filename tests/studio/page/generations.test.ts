/** The orders of a tab, whose page may be loaded again. */

import { expect, it } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { GatewayRequestError } from '../../../src/client/gateway-request.ts';
import { createLiveAudio } from '../../../src/client/live-audio/live-audio.ts';
import { createGenerationProgress } from '../../../src/demo/studio/generation-progress.ts';
import { createGenerations } from '../../../src/demo/studio/generations.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { fakeTime } from '../../client/fake-time.ts';
import { BASE_URL, ORDER } from '../../client/page/gateway-stub.ts';
import { openPage } from './open-page.ts';

const nothing = () => {};
const IDLE_PLAYER = {
  ...{ isListening: false, has: () => false, play: nothing, pause: nothing, openArriving: nothing },
  ...{ complete: nothing, breakOff: nothing, drawPeaks: nothing, showRecovery: nothing },
};

it('an order that waits for the gateway is sent once after a reload, and its refusal is clear', async () => {
  const advance = fakeTime();
  const { document, storage, text } = openPage();
  const [events, failures]: [unknown[], unknown[]] = [[], []];
  const client = createGatewayClient({
    baseUrl: BASE_URL,
    async fetch(_, { headers }) {
      events.push(new Headers(headers).get('idempotency-key'));
      return new Response(null, { status: 402 });
    },
  });
  const load = (confirmAccount: () => Promise<boolean>) =>
    createGenerations({
      ...{ client, storage, player: IDLE_PLAYER, confirmAccount, account: () => 'ada' },
      liveAudio: createLiveAudio(undefined),
      peaks: { keep: async () => undefined, of: async () => undefined, forget: nothing },
      progress: createGenerationProgress(part(document, 'progress'), {
        text,
        figures: part(document, 'figures'),
      }),
      ...{ onChange: nothing, onFound: nothing, onFailure: (error) => failures.push(error) },
    });
  const before = load(async () => {
    throw new GatewayRequestError('It has failed', { status: 0, retryIsSafe: true });
  });
  void before.order(ORDER, 'its key', nothing);
  await advance(0);
  expect(events).toEqual([]);
  const confirm = async () => events.push('confirmed') > 0;
  for (const { takeUp } of [load(confirm), load(confirm)]) {
    takeUp('ada');
    await advance(0);
  }
  expect(events).toEqual(['confirmed', 'its key']);
  expect(failures).toMatchObject([{ name: 'GatewayRequestError', status: 402 }]);
});
