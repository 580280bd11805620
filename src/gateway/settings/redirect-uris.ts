/** Reads the OAuth redirect URIs: a single one for every origin, or a list with one for each origin. */

import type { EnvironmentReader } from './environment-reader.ts';
import { redirectUriProblem } from './values.ts';

/** Every other comma is part of its URI. */
const BETWEEN_URIS = /,\s*(?=https?:\/\/)/i;

/** Each exactly as configured, because the identity provider compares them as strings. */
export function readRedirectUris(read: EnvironmentReader): readonly string[] {
  const uris = read.text('IDP_REDIRECT_URI', '').split(BETWEEN_URIS);
  if (uris.length === 1) return [read.checked('IDP_REDIRECT_URI', redirectUriProblem)];
  return uris.map((uri) => uri.replace(/[\s,]+$/, ''));
}

/** What is wrong with a list. The origin of a single URI may be any, because it is sent whatever the request's origin. */
export function redirectUriListProblems(
  uris: readonly string[],
  allowedOrigins: ReadonlySet<string>,
): string[] {
  if (uris.length < 2) return [];
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const uri of uris) {
    const url = URL.parse(uri);
    if (!url || !/^https?:$/.test(url.protocol)) {
      problems.push(`IDP_REDIRECT_URI: "${uri}" is not an http or https address`);
    } else if (uri.includes('#')) {
      problems.push(`IDP_REDIRECT_URI: "${uri}" must not hold a fragment`);
    } else if (seen.has(url.origin)) {
      problems.push(`IDP_REDIRECT_URI: ${url.origin} must have only one redirect URI`);
    } else if (allowedOrigins.size && !allowedOrigins.has(url.origin)) {
      problems.push(`IDP_REDIRECT_URI: the origin of "${uri}" is not in ALLOWED_ORIGINS`);
    }
    if (url) seen.add(url.origin);
  }
  return problems;
}

/** @returns undefined when the list has none for this origin */
export function redirectUriFor(uris: readonly string[], origin: string | null): string | undefined {
  return uris.length === 1 ? uris[0] : uris.find((uri) => URL.parse(uri)?.origin === origin);
}
