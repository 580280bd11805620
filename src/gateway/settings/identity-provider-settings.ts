/** The settings of the identity provider. */

import { clientKey } from './client-key.ts';
import type { EnvironmentReader } from './environment-reader.ts';
import { baseAddressProblem, normalized } from './values.ts';

export type IdentityProviderSettings = ReturnType<typeof readIdentityProviderSettings>;

/** A comma before anything else is part of a URI. */
const BETWEEN_URIS = /,\s*(?=https?:\/\/)/i;

export function readIdentityProviderSettings(read: EnvironmentReader, allowedOrigins: ReadonlySet<string>) {
  const issuer = read.checked('IDP_URL', baseAddressProblem);
  return {
    /** As configured, with its trailing slash if it has one: providers compare strings. */
    issuer,
    tokenUrl: read.optional('IDP_TOKEN_URL', tokenUrlProblem) ?? `${normalized(issuer)}/oauth/token`,
    clientId: read.required('IDP_CLIENT_ID'),
    /** Undefined for a public client. */
    credential: readCredential(read),
    /** One for all origins, or one for each; as configured, like the issuer. */
    redirectUris: readRedirectUris(read, allowedOrigins),
  } as const;
}

/** @returns undefined when the list has none for this origin */
export function redirectUriFor(uris: readonly string[], origin: string | null): string | undefined {
  return uris.length === 1 ? uris[0] : uris.find((uri) => URL.parse(uri)?.origin === origin);
}

/** @see RFC 6749 section 3.2: a query is allowed, a fragment is not. */
function tokenUrlProblem(value: string): string | undefined {
  if (value.includes('#')) return 'must not contain a fragment';
  return baseAddressProblem(value.split('?', 1)[0] ?? '');
}

/** How a confidential client authenticates. */
function readCredential(read: EnvironmentReader) {
  const secret = read.secret('IDP_CLIENT_SECRET');
  const key = read.secret('IDP_CLIENT_KEY');
  if (secret && key) read.problems.push('IDP_CLIENT_SECRET and IDP_CLIENT_KEY must not both be set');
  if (key) return { kind: 'key', key: clientKey(key) } as const;
  return secret ? ({ kind: 'secret', secret } as const) : undefined;
}

function readRedirectUris(read: EnvironmentReader, allowedOrigins: ReadonlySet<string>): readonly string[] {
  const uris = read.text('IDP_REDIRECT_URI').split(BETWEEN_URIS);
  // A single URI may have any scheme and origin, because it is sent whatever the request's origin is.
  if (uris.length === 1) return [read.checked('IDP_REDIRECT_URI', redirectUriProblem)];
  const list = uris.map((uri) => uri.replace(/[\s,]+$/, ''));
  const seen = new Set<string>();
  const problemWith = (uri: string, url: URL | null) => {
    if (!url || !/^https?:$/.test(url.protocol)) return `"${uri}" is not an http or https address`;
    if (uri.includes('#')) return `"${uri}" must not contain a fragment`;
    if (seen.has(url.origin)) return `${url.origin} must have only one redirect URI`;
    const isKnown = !allowedOrigins.size || allowedOrigins.has(url.origin);
    return isKnown ? undefined : `the origin of "${uri}" is not in ALLOWED_ORIGINS`;
  };
  for (const uri of list) {
    const url = URL.parse(uri);
    const problem = problemWith(uri, url);
    if (problem) read.problems.push(`IDP_REDIRECT_URI: ${problem}`);
    if (url) seen.add(url.origin);
  }
  return list;
}

/** @see RFC 6749 section 3.1.2: an absolute URI without a fragment. */
function redirectUriProblem(value: string): string | undefined {
  if (!URL.canParse(value)) return `must be an absolute URI, not "${value}"`;
  return value.includes('#') ? 'must not contain a fragment' : undefined;
}
