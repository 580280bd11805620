/** Session check, sign-out and sign-in. */

import { Elysia } from 'elysia';
import { readFields } from '../exchange/request-fields.ts';
import { GatewayError } from '../http/errors.ts';
import { validator } from '../http/validator.ts';
import { beginSession, endSession } from '../session/begin-and-end.ts';
import type { SessionParts, SessionPlugin } from '../session/session.ts';
import { redirectUriFor } from '../settings/identity-provider-settings.ts';
import { relayBuffered } from './relay-buffered.ts';
import { type SessionState, SignInRequest, typeOf } from './schemas.ts';

const validSignIn = validator(SignInRequest);

export function authRoutes(parts: SessionParts, sessionPlugin: SessionPlugin) {
  const { settings, api, admission } = parts;
  return new Elysia({ name: 'auth', prefix: '/api/auth' })
    .use(sessionPlugin)
    .get('/session', async ({ session, exchange, set }) => {
      set.headers['cache-control'] = 'no-store';
      await session.unseal();
      const { accessToken, refreshToken } = session.readTokens();
      if ((accessToken ?? refreshToken) === undefined) {
        session.rejectCookies();
        return { authenticated: false } satisfies SessionState;
      }
      const upstream = await session.fetchBuffered('me');
      if (upstream.status === 404) return { authenticated: true } satisfies SessionState;
      return relayBuffered(exchange, upstream);
    })
    .post(
      '/logout',
      async ({ session, exchange, request, set }) => {
        set.headers['cache-control'] = 'no-store';
        // Nothing reads it, and Bun would keep about a megabyte of it meanwhile. One that is broken cannot be cancelled.
        await request.body?.cancel().catch(() => {});
        await session.unseal();
        await endSession(parts, exchange, session.readTokens());
        return { ok: true };
      },
      { parse: 'none' },
    )
    .resolve(async ({ exchange, request, set }) => {
      set.headers['cache-control'] = 'no-store';
      const redirectUri = redirectUriFor(settings.identityProvider.redirectUris, exchange.origin);
      if (redirectUri === undefined) throw new GatewayError(403, 'signInNotSetUp');
      if (!admission.identityProvider.hasPlace()) throw admission.identityProvider.refusal();
      const fields = await readFields(request, admission.signInBodies, SignInRequest);
      const { code, code_verifier: codeVerifier } = validSignIn(fields);
      return { grant: { code, codeVerifier, redirectUri } };
    })
    .post(
      '/idp',
      async ({ session, exchange, grant }) => {
        const pair = await api.signIn(grant, exchange.record);
        await session.unseal();
        await beginSession(parts, exchange, session.readTokens(), pair);
        return { ok: true };
      },
      { parse: 'none', body: typeOf(SignInRequest) },
    );
}
