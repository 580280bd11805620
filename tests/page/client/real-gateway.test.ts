import { describe, expect, it } from 'bun:test';
import { startWorld } from '../../support/world.ts';
import { ORDER, receive, rejection } from './gateway-stub.ts';
import { clientIn, openPage, openSignedIn, PROVIDER } from './page.ts';

const ME = 'GET /v1/me';
const MUSIC = 'POST /v1/music';
const REFUSED = { status: 401 };
const ONCE = { giveUpAfterMs: 0 };

describe('the client in a page before a real gateway', () => {
  it('has no session without cookies, sees each refresh, and has none once a refresh is refused', async () => {
    await using nobody = startWorld();
    expect(await clientIn(openPage(), nobody).session()).toStrictEqual({ authenticated: false });
    expect(nobody.upstream.received).toEqual([]);

    let refreshes = 0;
    await using opened = await openSignedIn({ onRefresh: () => refreshes++ });
    const { world, client } = opened;
    let valid = 'access-1';
    world.upstream.on(ME, ({ headers }) => {
      const isValid = headers.get('authorization') === `Bearer ${valid}`;
      return isValid ? Response.json({ name: 'Ada' }) : new Response('', REFUSED);
    });
    const pair = { access_token: 'access-2', refresh_token: 'refresh-2' };
    world.upstream.on('POST /v1/auth/refresh', ({ body }) =>
      body.includes('refresh-1') ? Response.json(pair) : new Response('', REFUSED),
    );
    const session = { authenticated: true, profile: { name: 'Ada' } };
    expect([await client.session(), refreshes]).toEqual([session, 0]);
    valid = 'access-2';
    expect([await client.session(), refreshes]).toEqual([session, 1]);
    valid = 'access-3';
    expect(await client.session()).toEqual({ authenticated: false });
  });

  it('can read the ids of a track, and all that its errors are made of', async () => {
    await using opened = await openSignedIn();
    const { world, client } = opened;
    const ids = { 'x-music-creation-id': 'c-7', 'x-generation-id': 'g-9', 'content-type': 'audio/wav' };
    world.upstream.on(MUSIC, () => new Response('audio', { headers: ids }));
    const generation = { creationId: 'c-7', generationId: 'g-9', contentType: 'audio/wav' };
    expect(await receive(client)).toMatchObject(generation);

    const header = 'Bearer error="insufficient_user_authentication", max_age=300, acr_values="mfa"';
    const challenge = { 'www-authenticate': header };
    world.upstream.on(MUSIC, () => new Response('', { ...REFUSED, headers: challenge }));
    const error = Object(await rejection(client.generate(ORDER)));
    const { searchParams } = await client.beginSignIn({ ...PROVIDER, ...error.challenge });
    expect([searchParams.get('acr_values'), searchParams.get('max_age')]).toEqual(['mfa', '300']);
    expect(world.lines.map(({ requestId }) => requestId)).toContain(error.requestId);

    const later = { status: 429, headers: { 'retry-after': '7' } };
    world.upstream.on(MUSIC, () => Response.json({ message: 'Slow' }, later));
    const slow = { message: 'Slow', status: 429, retryAfterSeconds: 7 };
    expect(await rejection(client.generate(ORDER, ONCE))).toMatchObject(slow);
    await world.upstream.stop();
    expect(await rejection(client.generate(ORDER, ONCE))).toMatchObject({ status: 502, retryIsSafe: true });
  });

  it('leads nowhere with ids that a browser would resolve, and to the track with odd ones', async () => {
    await using opened = await openSignedIn();
    const { world, page, client } = opened;
    const asked = world.upstream.calls.length;
    for (const id of ['.', '..', '../../browser']) {
      for (const address of [client.contentUrl(id), client.publicContentUrl(id)]) {
        expect((await page.fetch(address, { credentials: 'include' })).status).toBe(404);
      }
      expect(await rejection(client.setVisibility(id, true))).toMatchObject({ status: 404 });
    }
    expect(world.upstream.calls).toHaveLength(asked);
    const id = 'a ?&;=+\u{1f3b5}';
    world.upstream.on(`PATCH /v1/music/creations/${encodeURIComponent(id)}`, () => Response.json({ id }));
    expect(await client.setVisibility(id, true)).toEqual({ id });
  });
});
