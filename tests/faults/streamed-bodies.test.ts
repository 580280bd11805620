import { describe, expect, it } from 'bun:test';
import { STREAMED_BODY_BYTES } from '../../src/gateway/settings/memory.ts';
import { eventually } from '../support/eventually.ts';
import { endless, expectRefused, fill, GENERATE, PLAYBACK, PROXY } from '../support/long-calls.ts';
import { ACCESS_ONLY, startWorld, type World } from '../support/world.ts';

const LARGE = 'x'.repeat(100_000);

/** With so many of four places for streamed bodies free. */
function startFilled(free: number): World {
  const world = startWorld({ MAX_STREAMED_BODIES: '4' });
  fill(world.admission.streamedBodies, free);
  for (const { call } of [PLAYBACK, PROXY]) world.upstream.on(call, () => endless());
  return world;
}

describe('a large body of session check or models', () => {
  it.each([
    ['a place among the streamed bodies when its length is declared', LARGE, 3, () => new Response(LARGE)],
    ['a place among the streamed bodies in chunks', LARGE, 3, () => new Response(new Blob([LARGE]).stream())],
    ['as many places as its size is worth', 'x'.repeat(3 * STREAMED_BODY_BYTES), 1, undefined],
  ])('needs %s', async (_, text, taken, respond = () => new Response(text)) => {
    await using world = startWorld({ MAX_STREAMED_BODIES: '4' });
    const { streamedBodies, reads } = world.admission;
    world.upstream.on('GET /v1/models', respond).on('GET /v1/me', () => Response.json({}));
    const models = () => world.request('/api/music/models', { cookie: ACCESS_ONLY });
    const response = await models();
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(text);
    await eventually(() => !streamedBodies.inUse, 'the bodies to be sent');
    fill(streamedBodies, 4 - taken);
    await expectRefused(await models());
    expect((await world.request('/api/auth/session', { cookie: ACCESS_ONLY })).status).toBe(200);
    expect(reads.inUse).toBe(0);
    expect(streamedBodies.inUse).toBe(taken);
  });
});

describe('one session', () => {
  it('streams a quarter of MAX_STREAMED_BODIES, and orders generations all the same', async () => {
    await using world = startWorld({ MAX_STREAMED_BODIES: '20' });
    world.upstream.on(PROXY.call, () => endless()).on(GENERATE.call, () => new Response('audio'));
    const tracks = await Promise.all(Array.from({ length: 5 }, () => PROXY.send(world)));
    expect(tracks.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    await expectRefused(await PROXY.send(world), 429);
    expect((await GENERATE.send(world)).status).toBe(200);
    const other = await PROXY.send(world, { cookie: 'svc_music_access=other' });
    expect(other.status).toBe(200);
    for (const track of [...tracks, other]) await track.body?.cancel();
  });
});

describe('streamed bodies beyond MAX_STREAMED_BODIES', () => {
  it('are refused to strangers first', async () => {
    await using world = startFilled(2);
    await expectRefused(await world.request('/api/upstream/v1/music/public/1/content'));
    expect(world.upstream.calls).toEqual([]);
    world.upstream.on(PLAYBACK.call, () => Response.json({ small: true }));
    expect((await PLAYBACK.send(world)).status).toBe(200);
    const track = await PROXY.send(world);
    expect(track.status).toBe(200);
    await track.body?.cancel();
  });

  it('are refused to GET next, and the upstream is given up', async () => {
    await using world = startFilled(1);
    const cancelled = Promise.withResolvers<void>();
    world.upstream.on(PROXY.call, () => endless(cancelled.resolve));
    await expectRefused(await PROXY.send(world));
    await cancelled.promise;
    expect(world.admission.streams.inUse).toBe(0);
    // What fits in one piece is not streamed.
    world.upstream.on(PROXY.call, () => Response.json({ small: true }));
    expect((await PROXY.send(world)).status).toBe(200);
  });

  it('are never refused when they are paid for, or when the upstream has changed something', async () => {
    await using world = startFilled(1);
    world.upstream.on('POST /v1/slow', () => endless());
    world.upstream.on(GENERATE.call, () => {
      fill(world.admission.streamedBodies);
      return endless();
    });
    const generation = await GENERATE.send(world);
    expect(generation.status).toBe(200);
    const changed = await PROXY.send(world, { method: 'POST' });
    expect(changed.status).toBe(200);
    // The next order is refused, because nothing has been paid for yet.
    await expectRefused(await GENERATE.send(world));
    for (const { body } of [generation, changed]) await body?.cancel();
  });
});
