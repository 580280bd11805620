import { describe, expectTypeOf, it } from 'bun:test';
import type { Gateway } from '../../src/gateway/gateway.ts';

/** What Elysia knows of the routes, and typed clients such as Eden read. */
type Api = Gateway['~Routes']['api'];
type SignIn = Api['auth']['idp']['post']['body'];
type Generation = Api['music']['generate']['post']['body'];

const TRACK = { model: 'm', prompt: 'p', music_length_ms: 3000 };

describe('the type of the gateway', () => {
  it('has the bodies of sign-in and generation', () => {
    expectTypeOf<SignIn>().toEqualTypeOf<{ code: string; code_verifier: string }>();
    expectTypeOf<Generation>().toExtend<typeof TRACK>();
    expectTypeOf<typeof TRACK & { is_public: boolean }>().toExtend<Generation>();
  });

  it('refuses a body without a field that is required, or with a text for a number', () => {
    expectTypeOf<{ code: string }>().not.toExtend<SignIn>();
    expectTypeOf<{ model: string; prompt: string; music_length_ms: string }>().not.toExtend<Generation>();
  });

  it('has no method that a path does not have', () => {
    expectTypeOf<Api['music']>().not.toHaveProperty('delete');
    expectTypeOf<keyof Api['music']['generate']>().toEqualTypeOf<'post'>();
  });

  it('has the responses of the gateway itself; the rest is of the upstream', () => {
    expectTypeOf<Api['auth']['session']['get']['response'][200]>().toEqualTypeOf<
      Response | { authenticated: true } | { authenticated: false }
    >();
    expectTypeOf<Api['auth']['logout']['post']['response'][200]>().toEqualTypeOf<{ ok: boolean }>();
    expectTypeOf<Api['health']['get']['response'][200]>().toEqualTypeOf<{
      service: string;
      status: string;
    }>();
    expectTypeOf<Api['music']['models']['get']['response'][200]>().toEqualTypeOf<Response>();
  });
});
