/** The settings of the identity provider. */

import { ClientKey } from './client-key.ts';
import type { EnvironmentReader } from './environment-reader.ts';
import { readRedirectUris } from './redirect-uris.ts';
import { baseAddressProblem, normalized, tokenUrlProblem } from './values.ts';

/** How a confidential client authenticates. */
export type ClientCredential =
  | { readonly kind: 'secret'; readonly secret: string }
  | { readonly kind: 'key'; readonly key: ClientKey };

export interface IdentityProviderSettings {
  /** Kept exactly as configured, because providers compare it as a string, including a trailing slash. */
  readonly issuer: string;
  readonly tokenUrl: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly credential: ClientCredential | undefined;
  /** One for every origin, or else one for each. */
  readonly redirectUris: readonly string[];
}

export function readIdentityProviderSettings(read: EnvironmentReader): IdentityProviderSettings {
  const issuer = read.checked('IDP_URL', baseAddressProblem);
  return {
    issuer,
    tokenUrl: read.optional('IDP_TOKEN_URL', tokenUrlProblem) ?? `${normalized(issuer)}/oauth/token`,
    clientId: read.required('IDP_CLIENT_ID'),
    credential: readCredential(read),
    redirectUris: readRedirectUris(read),
  };
}

function readCredential(read: EnvironmentReader): ClientCredential | undefined {
  const secret = read.secret('IDP_CLIENT_SECRET');
  const key = read.secret('IDP_CLIENT_KEY');
  if (secret && key) read.problems.push('IDP_CLIENT_SECRET and IDP_CLIENT_KEY must not both be set');
  if (key) return { kind: 'key', key: new ClientKey(key) };
  return secret ? { kind: 'secret', secret } : undefined;
}
