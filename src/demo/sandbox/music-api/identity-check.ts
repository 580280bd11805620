/** Asks the identity provider which person an access token belongs to. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ApiError } from './api-error.ts';

const TIMEOUT_MS = 10_000;

const userinfo = Type.Object({ sub: Type.String({ minLength: 1 }), name: Type.String() });

/**
 * @throws ApiError 401 if the identity provider rejects the token, 502 if it does not respond with JSON
 * @see OpenID Connect Core 1.0 section 5.3
 */
export async function checkIdentity(
  identityProviderUrl: string,
  accessToken: string,
): Promise<{ id: string; name: string }> {
  let response: Response;
  let claims: unknown;
  try {
    response = await fetch(`${identityProviderUrl}/oauth/userinfo`, {
      headers: { Accept: 'application/json', Authorization: `Bearer ${accessToken}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    claims = await response.json();
  } catch {
    throw new ApiError(502, 'The identity provider cannot be asked');
  }
  if (!response.ok || !Value.Check(userinfo, claims)) {
    throw new ApiError(401, 'The identity provider does not know this access token');
  }
  return { id: claims.sub, name: claims.name };
}
