import { describe, expect, expectTypeOf, it } from 'bun:test';
import { treaty } from '@elysiajs/eden';
import type { Gateway } from '../../src/gateway/gateway.ts';
import { ACCESS_ONLY, ORIGIN, startWorld, type World } from '../support/world.ts';

/** Outside a browser it has to say itself who asks. */
function clientOf({ url }: World, cookie: string) {
  return treaty<Gateway>(url, { headers: { origin: ORIGIN, cookie } });
}
type Client = ReturnType<typeof clientOf>;
type Body<Route extends (body: never) => unknown> = Parameters<Route>[0];
type Data<Route extends (...parameters: never[]) => Promise<{ data: unknown }>> = NonNullable<
  Awaited<ReturnType<Route>>['data']
>;

const TRACK = { model: 'm', prompt: 'p', music_length_ms: 3000 };

describe('the type of the gateway, for an Eden client', () => {
  it('knows the bodies of sign-in and generation', () => {
    type SignIn = Body<Client['api']['auth']['idp']['post']>;
    expectTypeOf<SignIn>().toEqualTypeOf<{ code: string; code_verifier: string }>();
    type Generation = Body<Client['api']['music']['generate']['post']>;
    expectTypeOf<Generation>().toExtend<typeof TRACK>();
    expectTypeOf<typeof TRACK & { is_public: boolean }>().toExtend<Generation>();
  });

  it('refuses bodies that the gateway would refuse', () => {
    const calls = ({ api }: Client) => [
      // @ts-expect-error the verifier is missing
      api.auth.idp.post({ code: 'c' }),
      // @ts-expect-error a length is a number
      api.music.generate.post({ ...TRACK, music_length_ms: '3000' }),
      // @ts-expect-error there is no such route
      api.music.delete(),
    ];
    expectTypeOf(calls).returns.toBeArray();
  });

  it('knows what the gateway itself answers, and that the rest is the upstream’s', () => {
    type SessionCheck = Data<Client['api']['auth']['session']['get']>;
    expectTypeOf<SessionCheck>().toEqualTypeOf<
      Response | { authenticated: true } | { authenticated: false }
    >();
    expectTypeOf<Data<Client['api']['auth']['logout']['post']>>().toEqualTypeOf<{ ok: boolean }>();
    expectTypeOf<Data<Client['api']['health']['get']>>().toEqualTypeOf<{ service: string; status: string }>();
    expectTypeOf<Data<Client['api']['music']['models']['get']>>().toEqualTypeOf<Response>();
  });
});

describe('an Eden client', () => {
  it('checks the session, generates a track and signs out', async () => {
    await using world = startWorld();
    world.upstream.on(
      'POST /v1/music',
      () => new Response('audio', { headers: { 'x-generation-id': 'g1' } }),
    );
    const stranger = await clientOf(world, '').api.auth.session.get();
    expect(stranger.data).toEqual({ authenticated: false });

    const { api } = clientOf(world, ACCESS_ONLY);
    const track = await api.music.generate.post({ ...TRACK, is_public: true });
    expect(track.error).toBeNull();
    expect(track.response.headers.get('x-generation-id')).toBe('g1');
    expect(JSON.parse(world.upstream.last('POST /v1/music').body)).toEqual({
      ...TRACK,
      force_instrumental: false,
      is_public: true,
    });
    expect((await api.auth.logout.post()).data).toEqual({ ok: true });
  });

  it('gets the status and the envelope of an error', async () => {
    await using world = startWorld();
    const { data, status, error } = await clientOf(world, '').api.music.models.get();
    expect(data).toBeNull();
    expect(status).toBe(401);
    expect(error?.value).toEqual({ error: { message: 'You are not signed in.' } });
  });
});
