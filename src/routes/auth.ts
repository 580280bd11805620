/** Sign-in, session check and sign-out. */

import { Elysia } from 'elysia';
import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import { readFields } from '../http/request-body.ts';
import { traceOf } from '../http/request-trace.ts';
import type { SessionPlugin } from '../session/session.ts';
import type { Settings } from '../settings.ts';
import { exchangeCode } from '../upstream/identity-provider.ts';
import { signIn } from '../upstream/session-endpoints.ts';
import { type SessionState, SignInRequest } from './schemas.ts';
import { wholeAnswer, wholeGet } from './whole-get.ts';

export function authRoutes(settings: Settings, session: SessionPlugin) {
  return new Elysia({ name: 'auth', prefix: '/api/auth' })
    .use(session)
    .post(
      '/idp',
      async ({ body, session, request, server }) => {
        const grant = { code: body.code, codeVerifier: body.code_verifier };
        const trace = traceOf(request);
        const longestMs = 2 * settings.timeouts.signInMs;
        const pair = await withoutIdleTimeout({ request, server }, longestMs, async () =>
          signIn(settings, await exchangeCode(settings, grant, trace), trace),
        );
        await session.begin(pair);
        return { ok: true };
      },
      { body: SignInRequest, parse: ({ request }) => readFields(request) },
    )
    .get('/session', async ({ session, request, set }) => {
      set.headers['cache-control'] = 'no-store';
      if (!(await session.hasTokens())) return { authenticated: false } satisfies SessionState;
      const upstream = await session.fetch(wholeGet(settings, 'me', request));
      return upstream.status === 404
        ? ({ authenticated: true } satisfies SessionState)
        : wholeAnswer(upstream, { request, set });
    })
    .post(
      '/logout',
      async ({ session, set }) => {
        set.headers['cache-control'] = 'no-store';
        await session.signOut();
        return { ok: true };
      },
      { parse: 'none' },
    );
}
