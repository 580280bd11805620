import { describe, expectTypeOf, it } from 'bun:test';
import type { Gateway } from '../../src/gateway/gateway.ts';

/** What Elysia knows of the routes, and typed clients such as Eden read. */
type Api = Gateway['~Routes']['api'];

describe('the type of the gateway', () => {
  it('has no method that a path does not have', () => {
    expectTypeOf<Api['music']>().not.toHaveProperty('delete');
    expectTypeOf<keyof Api['music']['generate']>().toEqualTypeOf<'post'>();
  });

  it('has the responses of the gateway itself; the rest is of the upstream', () => {
    expectTypeOf<Api['auth']['session']['get']['response'][200]>().toEqualTypeOf<
      Response | { authenticated: true } | { authenticated: false }
    >();
    expectTypeOf<Api['auth']['logout']['post']['response'][200]>().toEqualTypeOf<{ ok: boolean }>();
    expectTypeOf<Api['health']['get']['response'][200]>().toEqualTypeOf<
      Response | { service: string; status: string }
    >();
    expectTypeOf<Api['music']['models']['get']['response'][200]>().toEqualTypeOf<Response>();
  });
});
