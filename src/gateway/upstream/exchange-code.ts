/** Exchanges an authorization code at the identity provider. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { GatewayError } from '../http/errors.ts';
import { OAUTH_ERRORS, type RequestRecord } from '../record/request-record.ts';
import type { IdentityProviderSettings } from '../settings/identity-provider-settings.ts';
import { Buffered } from './body-modes.ts';
import { fetchUpstream, type UpstreamCall } from './fetch-upstream.ts';
import { findProblem, Token } from './token-pair.ts';
import { isSuccess, jsonOf } from './upstream-response.ts';

/** The redirect URI is the one with which the code was requested. */
export type AuthorizationGrant = Readonly<Record<'code' | 'codeVerifier' | 'redirectUri', string>>;

const TokenResponse = Type.Object({ access_token: Token });
const ErrorResponse = Type.Object({ error: Type.String() });

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
  const headers = {
    accept: 'application/json',
    'content-type': 'application/x-www-form-urlencoded',
    // Adds fields to the form as well.
    ...(await authenticate(provider, form)),
  };
  const call: UpstreamCall = {
    name: 'token',
    method: 'POST',
    url: provider.tokenUrl,
    headers,
    body: form.toString(),
    timeoutMs,
    bodyMode: new Buffered(),
    texts: {
      unreachable: 'identityProviderUnreachable',
      late: 'identityProviderTimeout',
      invalid: 'identityProviderInvalid',
    },
  };
  const response = await fetchUpstream(call, record);
  const body = jsonOf(response);
  if (isSuccess(response)) {
    if (Value.Check(TokenResponse, body)) return body.access_token;
    record.tokenProblem = findProblem(body, 'access_token');
  }
  if (Value.Check(ErrorResponse, body)) {
    record.oauthError = OAUTH_ERRORS.find((each) => each === body.error) ?? 'other';
  }
  const status = response.status >= 400 ? response.status : 401;
  // The user is to blame neither for a wrong registration nor for a failure of the provider.
  const failed = status >= 500 ? 'identityProviderFailed' : 'signInRefused';
  throw new GatewayError(status, record.oauthError === 'invalid_client' ? 'clientRefused' : failed);
}

/**
 * Authenticates a confidential client: adds fields to the form, and returns headers.
 *
 * @see RFC 6749 section 2.3.1 (secret), RFC 7523 section 2.2 (key)
 */
async function authenticate(
  { credential, issuer, clientId }: IdentityProviderSettings,
  form: URLSearchParams,
): Promise<Record<string, string>> {
  if (!credential) return {};
  const { ClientSecretBasic, PrivateKeyJwt } = await import('oauth4webapi');
  const authentication =
    credential.kind === 'secret'
      ? ClientSecretBasic(credential.secret)
      : PrivateKeyJwt(await credential.key.imported());
  const headers = new Headers();
  await authentication({ issuer }, { client_id: clientId }, form, headers);
  return Object.fromEntries(headers);
}
