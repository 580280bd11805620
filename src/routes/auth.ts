/** Sign-in, session check and sign-out. */

import { Elysia } from 'elysia';
import type { Admission } from '../http/admission/admission.ts';
import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import { readFields } from '../http/request-body.ts';
import { traceOf } from '../http/request-trace.ts';
import type { SessionPlugin } from '../session/session-plugin.ts';
import type { Settings } from '../settings.ts';
import { exchangeCode } from '../upstream/identity-provider.ts';
import type { SessionEndpoints } from '../upstream/session-endpoints.ts';
import { type SessionState, SignInRequest } from './schemas.ts';
import { wholeAnswer, wholeGet } from './whole-get.ts';

const SIGN_IN_FIELDS = Object.keys(SignInRequest.properties);

interface AuthRoutesParts {
  readonly settings: Settings;
  readonly session: SessionPlugin;
  readonly admission: Admission;
  readonly upstreamSessions: SessionEndpoints;
}

export function authRoutes({ settings, session, admission, upstreamSessions }: AuthRoutesParts) {
  return new Elysia({ name: 'auth', prefix: '/api/auth' })
    .use(session)
    .post(
      '/idp',
      async ({ body, session, request, server }) => {
        const grant = { code: body.code, codeVerifier: body.code_verifier };
        const trace = traceOf(request);
        // The code works once: it is not spent when its identity token would find no place.
        admission.sessions.refuseIfFull();
        const longestMs = 2 * settings.timeouts.signInMs;
        const pair = await withoutIdleTimeout({ request, server }, longestMs, async () =>
          upstreamSessions.signIn(
            await exchangeCode(settings, admission.identityProvider, grant, trace),
            trace,
          ),
        );
        await session.begin(pair);
        return { ok: true };
      },
      {
        body: SignInRequest,
        parse: ({ request }) => {
          admission.identityProvider.refuseIfFull();
          return readFields(request, admission.requestBodies, SIGN_IN_FIELDS);
        },
      },
    )
    .get('/session', async ({ session, request, server, set }) => {
      set.headers['cache-control'] = 'no-store';
      if (!(await session.hasTokens())) return { authenticated: false } satisfies SessionState;
      return wholeGet({ settings, admission, session, request }, 'me', (upstream) =>
        upstream.status === 404
          ? ({ authenticated: true } satisfies SessionState)
          : wholeAnswer(upstream, { request, server, set }),
      );
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
