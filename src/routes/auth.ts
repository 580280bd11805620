/** Sign-in, session check and sign-out. */

import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import type { MessageKey } from '../http/messages.ts';
import { readFields } from '../http/request-body.ts';
import type { SessionPlugin } from '../session/session.ts';
import type { Settings } from '../settings.ts';
import { exchangeCode } from '../upstream/identity-provider.ts';
import { signIn } from '../upstream/session-endpoints.ts';
import { wholeAnswer, wholeGet } from './whole-get.ts';

/** @see RFC 7636 section 4.1: a verifier has at least 43 characters; judging it is the identity provider's task. */
export const SignInRequest = Type.Object(
  {
    code: Type.String({ minLength: 1, error: 'codeInvalid' satisfies MessageKey }),
    code_verifier: Type.String({ minLength: 43, error: 'codeVerifierInvalid' satisfies MessageKey }),
  },
  { additionalProperties: true, error: 'bodyNotAnObject' satisfies MessageKey },
);
export type SignInRequest = Static<typeof SignInRequest>;

export function authRoutes(settings: Settings, session: SessionPlugin) {
  return new Elysia({ name: 'auth', prefix: '/api/auth' })
    .use(session)
    .post(
      '/idp',
      async ({ body, session, request, server }) => {
        const grant = { code: body.code, codeVerifier: body.code_verifier };
        const pair = await withoutIdleTimeout({ request, server }, async () =>
          signIn(settings, await exchangeCode(settings, grant)),
        );
        await session.begin(pair);
        return { ok: true };
      },
      { body: SignInRequest, parse: ({ request }) => readFields(request) },
    )
    .get('/session', async ({ session, request, set }) => {
      set.headers['cache-control'] = 'no-store';
      if (!(await session.hasTokens())) return { authenticated: false };
      const upstream = await session.fetch(wholeGet(settings, '/v1/me', request.signal));
      return upstream.status === 404 ? { authenticated: true } : wholeAnswer(upstream);
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
