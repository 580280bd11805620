/** What `deploy/your-api.md` says of an API that differs from the sandbox, as a page notices it. */

import { expect, it } from 'bun:test';
import type { Received } from '../../support/scripted-upstream.ts';
import {
  accept,
  checkSession,
  ME,
  pair,
  REFRESH,
  reply,
  scriptSignIn,
  signIn,
} from '../../support/session-calls.ts';
import { ACCESS_ONLY, SIGNED_IN, startWorld } from '../../support/world.ts';

it.each([
  ['without expires_in', pair(1), 900],
  ['with all three in data, and the seconds as a text', { data: { ...pair(1), expires_in: '60' } }, 60],
])('an API %s signs in', async (_, tokens, seconds) => {
  await using world = startWorld();
  scriptSignIn(world, tokens);
  const { status, headers } = await signIn(world);
  expect([status, headers.getSetCookie()[0]]).toEqual([
    200,
    `svc_music_access=access-1; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax`,
  ]);
});

it('an API that issues the same refresh token again keeps the user signed in, and sees no theft', async () => {
  await using world = startWorld();
  for (const access of ['access-2', 'access-3']) {
    world.upstream
      .on(ME, accept(access, reply(200, { name: 'Ada' })))
      .on(REFRESH, reply(200, { ...pair(1), access_token: access }));
    expect((await checkSession(world, SIGNED_IN)).status).toBe(200);
  }
  expect(world.upstream.calls).toEqual([ME, REFRESH, ME, ME, REFRESH, ME]);
  expect(world.lines.some((line) => 'refreshTokenReused' in line)).toBe(false);
});

const CONTENT = 'GET /v1/music/creations/7/content';
/** 12 slices. */
const TRACK = Buffer.alloc(3 * 1024 * 1024, 'track');

/** Responds with the range, as an API with a weak ETag does. */
function ranges({ headers }: Received): Response {
  const [, first = 0, last = TRACK.length - 1] = /(\d+)-(\d+)?/.exec(headers.get('range') ?? '') ?? [];
  const range = `bytes ${first}-${last}/${TRACK.length}`;
  const part = TRACK.subarray(Number(first), Number(last) + 1);
  return new Response(part, { status: 206, headers: { 'content-range': range, etag: 'W/"a"' } });
}

it.each([
  ['without ranges', () => new Response(TRACK), 200, 1],
  ['with weak ETags', ranges, 206, 2],
] as const)('an API %s plays a track whole', async (_, respond, status, calls) => {
  await using world = startWorld();
  world.upstream.on(CONTENT, respond);
  const range = { cookie: ACCESS_ONLY, headers: { range: 'bytes=0-' } };
  const response = await world.request('/api/upstream/v1/music/creations/7/content', range);
  expect([response.status, TRACK.equals(await response.bytes())]).toEqual([status, true]);
  expect(world.upstream.calls).toEqual(Array(calls).fill(CONTENT));
});
