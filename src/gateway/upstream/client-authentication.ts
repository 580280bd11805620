/** Authenticates the gateway to the identity provider as a confidential client. */

import type { IdentityProviderSettings } from '../settings/identity-provider-settings.ts';

/**
 * Adds the client's authentication to the form, if there is a credential.
 *
 * @returns the headers of the authentication
 * @see RFC 6749 section 2.3.1 (secret), RFC 7523 section 2.2 (key)
 */
export async function authenticate(
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
