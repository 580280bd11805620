/** Exchanges an authorization code at the identity provider. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { Pool } from '../http/admission/pool.ts';
import { GatewayError } from '../http/errors.ts';
import { messages } from '../http/messages.ts';
import type { RequestTrace } from '../http/request-trace.ts';
import type { Settings } from '../settings.ts';
import { fetchUpstream, type UpstreamCall } from './fetch-upstream.ts';
import { Token } from './token-pair.ts';
import { isSuccess, jsonOf } from './upstream-answer.ts';

export interface AuthorizationGrant {
  readonly code: string;
  readonly codeVerifier: string;
}

const FAILURE_TEXTS = {
  unreachable: messages.identityProviderUnreachable,
  late: messages.identityProviderTimeout,
  invalid: messages.identityProviderInvalid,
};

const TokenResponse = Type.Object({ access_token: Token });

/**
 * @returns the identity access token
 * @throws GatewayError with the provider's error status, 401 when it gives no token, 502 when it cannot be reached, 503
 *   when there is no place for the call
 * @see RFC 6749 section 4.1.3, RFC 7636 section 4.5
 */
export async function exchangeCode(
  { identityProvider, timeouts }: Settings,
  pool: Pool,
  { code, codeVerifier }: AuthorizationGrant,
  trace: RequestTrace,
): Promise<string> {
  const call: UpstreamCall = {
    name: 'token',
    trace,
    method: 'POST',
    url: `${identityProvider.url}/oauth/token`,
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      code_verifier: codeVerifier,
      client_id: identityProvider.clientId,
      redirect_uri: identityProvider.redirectUri,
    }).toString(),
    timeoutMs: timeouts.signInMs,
    answer: 'whole',
    texts: FAILURE_TEXTS,
  };
  const answer = await pool.during(() => fetchUpstream(call));
  if (answer.status >= 400) throw new GatewayError(answer.status, messages.signInRefused);
  const body = isSuccess(answer) ? jsonOf(answer) : undefined;
  if (!Value.Check(TokenResponse, body)) throw new GatewayError(401, messages.signInRefused);
  return body.access_token;
}
