/** Exchanges an authorization code at the identity provider. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { GatewayError } from '../http/errors.ts';
import type { OAuthError, RequestRecord } from '../record/request-record.ts';
import type { IdentityProviderSettings } from '../settings/identity-provider-settings.ts';
import type { FailureTexts } from './call-failure.ts';
import { authenticate } from './client-authentication.ts';
import { fetchUpstream } from './fetch-upstream.ts';
import { Token } from './token-pair.ts';
import { isSuccess, jsonOf } from './upstream-response.ts';

export interface AuthorizationGrant {
  readonly code: string;
  readonly codeVerifier: string;
  /** The one with which the code was requested. */
  readonly redirectUri: string;
}

const FAILURE_TEXTS: FailureTexts = {
  unreachable: 'identityProviderUnreachable',
  late: 'identityProviderTimeout',
  invalid: 'identityProviderInvalid',
};

const TokenResponse = Type.Object({ access_token: Token });
const ErrorResponse = Type.Object({ error: Type.String() });

const OAUTH_ERRORS: readonly OAuthError[] = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
];

/**
 * @returns the identity access token
 * @throws GatewayError with the provider's error status, 401 when it returns no token, 502 when it cannot be reached
 * @see RFC 6749 section 4.1.3, RFC 7636 section 4.5
 */
export async function exchangeCode(
  provider: IdentityProviderSettings,
  timeoutMs: number,
  { code, codeVerifier, redirectUri }: AuthorizationGrant,
  record: RequestRecord,
): Promise<string> {
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    code_verifier: codeVerifier,
    client_id: provider.clientId,
    redirect_uri: redirectUri,
  });
  const authentication = await authenticate(provider, form);
  const response = await fetchUpstream(
    {
      name: 'token',
      method: 'POST',
      url: provider.tokenUrl,
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        ...authentication,
      },
      body: form.toString(),
      timeoutMs,
      bodyMode: 'buffered',
      texts: FAILURE_TEXTS,
    },
    record,
  );
  const body = jsonOf(response);
  if (isSuccess(response) && Value.Check(TokenResponse, body)) return body.access_token;
  record.oauthError = oauthErrorOf(body);
  const status = response.status >= 400 ? response.status : 401;
  throw new GatewayError(status, refusalText(status, record.oauthError));
}

function oauthErrorOf(body: unknown): OAuthError | undefined {
  if (!Value.Check(ErrorResponse, body)) return undefined;
  return OAUTH_ERRORS.find((each) => each === body.error) ?? 'other';
}

/** A wrong registration and a failure of the provider have texts of their own, because the user is not to blame. */
function refusalText(status: number, error: OAuthError | undefined) {
  if (error === 'invalid_client') return 'clientRefused';
  return status >= 500 ? 'identityProviderFailed' : 'signInRefused';
}
