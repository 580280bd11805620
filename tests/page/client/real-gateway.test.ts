import { describe, expect, it } from 'bun:test';
import { ORDER, receive, rejection } from './gateway-stub.ts';
import { openSignedIn } from './page.ts';

const ME = 'GET /v1/me';
const MUSIC = 'POST /v1/music';

describe('the client in a page before a real gateway', () => {
  it('notices a refresh, reads the ids of a track and the reasons of a failure, and signs out', async () => {
    let refreshes = 0;
    await using opened = await openSignedIn({ onRefresh: () => refreshes++ });
    const { world, client } = opened;
    const pair = { access_token: 'access-2', refresh_token: 'refresh-2' };
    world.upstream.on('POST /v1/auth/refresh', () => Response.json(pair));
    world.upstream.on(ME, ({ headers }) =>
      headers.get('authorization')?.endsWith('-2') ? Response.json('Ada') : new Response('', { status: 401 }),
    );
    expect(await client.session()).toEqual({ authenticated: true, profile: 'Ada' });
    expect(refreshes).toBe(1);

    const ids = { 'x-music-creation-id': 'c-7', 'x-generation-id': 'g-9', 'content-type': 'audio/wav' };
    world.upstream.on(MUSIC, () => new Response('audio', { headers: ids }));
    const generation = { creationId: 'c-7', generationId: 'g-9', contentType: 'audio/wav' };
    expect(await receive(client)).toMatchObject(generation);

    const header = 'Bearer error="insufficient_scope", max_age=300, acr_values="mfa"';
    const refusal = { status: 401, headers: { 'www-authenticate': header, 'retry-after': '7' } };
    world.upstream.on(MUSIC, () => Response.json({ message: 'Step up' }, refusal));
    const error = Object(await rejection(client.generate(ORDER)));
    const challenge = { error: 'insufficient_scope', acrValues: 'mfa', maxAgeSeconds: 300 };
    expect(error).toMatchObject({ message: 'Step up', retryAfterSeconds: 7, challenge });
    expect(world.lines.map(({ requestId }) => requestId)).toContain(error.requestId);

    world.upstream.on('POST /v1/auth/logout', () => new Response());
    await client.signOut();
    expect(await client.session()).toEqual({ authenticated: false });
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
