/** A shared track, in the Studio's page without its script. */

import { expect, it, mock } from 'bun:test';
import { GatewayRequestError } from '../../../src/client/gateway-request.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { showSharedTrack } from '../../../src/demo/studio/shared-track.ts';
import { fakeTime } from '../../client/fake-time.ts';
import { openPage } from './open-page.ts';

/** Follows a link to a track for half a minute, in which its requests end with these, the last one repeated. */
async function follow(statuses: readonly number[]) {
  const advance = fakeTime();
  const { document, text } = openPage();
  const root = part(document, 'shared');
  const upstreamData = mock(async () => {
    const status = statuses[upstreamData.mock.calls.length - 1] ?? statuses.at(-1) ?? 0;
    throw new GatewayRequestError('It has failed', { status, retryIsSafe: true });
  });
  showSharedTrack(root, {
    text,
    client: { upstreamData },
    address: 'https://studio.test/?listen=7',
    isPlayerFree: () => true,
    ...{ onOpen() {}, onPlay() {}, onPause() {} },
  });
  for (const seconds of [0, 10, 10, 10]) await advance(seconds * 1_000);
  return [part(root, 'title').textContent, upstreamData.mock.calls.length];
}

it.each([
  ...[400, 401, 403, 404, 410].map((status) => [[status], english.sharedGone, 1] as const),
  ...[0, 408, 429, 503].map((status) => [[status], english.sharedLoading, 4] as const),
  [[0, 0, 404], english.sharedGone, 3],
] as const)(
  'after the failures %p of a shared track, the page says “%s”',
  async (statuses, heading, requests) => {
    expect(await follow(statuses)).toEqual([heading, requests]);
  },
);
