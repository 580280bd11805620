/** Sign-in, session check and sign-out. */

import { Elysia } from 'elysia';
import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import { readFields } from '../http/request-body.ts';
import { beginSession, endSession } from '../session/begin-and-end.ts';
import type { SessionParts } from '../session/session.ts';
import type { SessionPlugin } from '../session/session-plugin.ts';
import { traceOf } from '../trace/request-trace.ts';
import { exchangeCode } from '../upstream/identity-provider.ts';
import type { SessionEndpoints } from '../upstream/session-endpoints.ts';
import { bufferedGet, bufferedResponse } from './buffered-get.ts';
import { type SessionState, SignInRequest } from './schemas.ts';

const SIGN_IN_FIELDS = Object.keys(SignInRequest.properties);

export function authRoutes(parts: SessionParts, session: SessionPlugin, upstreamSessions: SessionEndpoints) {
  const { settings, admission } = parts;
  return new Elysia({ name: 'auth', prefix: '/api/auth' })
    .use(session)
    .post(
      '/idp',
      async ({ body, request, server, set }) => {
        set.headers['cache-control'] = 'no-store';
        const grant = { code: body.code, codeVerifier: body.code_verifier };
        const trace = traceOf(request);
        // Checked first, because the code works only once and its identity token will need a place.
        admission.sessions.refuseIfFull();
        const longestMs = 2 * settings.timeouts.signInMs;
        const pair = await withoutIdleTimeout({ request, server }, longestMs, async () =>
          upstreamSessions.signIn(
            await exchangeCode(settings, admission.identityProvider, grant, trace),
            trace,
          ),
        );
        await beginSession(parts, { request, server, set }, pair);
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
      return bufferedGet({ settings, admission, session, request }, 'me', (upstream) =>
        upstream.status === 404
          ? ({ authenticated: true } satisfies SessionState)
          : bufferedResponse(upstream, { request, server, set }),
      );
    })
    .post(
      '/logout',
      async ({ request, server, set }) => {
        set.headers['cache-control'] = 'no-store';
        await endSession(parts, upstreamSessions, { request, server, set });
        return { ok: true };
      },
      { parse: 'none' },
    );
}
