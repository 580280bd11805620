/** Reads the OAuth redirect URIs: a single one for every origin, or a list with one for each origin. */

import type { EnvironmentReader } from './environment-reader.ts';
import { redirectUriProblem } from './values.ts';

const BEFORE_ADDRESS = /,(?=\s|https?:)/i;
/** A comma in a query is part of its URI. */
const OUTSIDE_QUERY = /(?<!\?.*),/;

/** Each exactly as configured, because the identity provider compares them as strings. */
export function readRedirectUris(read: EnvironmentReader): readonly string[] {
  const value = read.required('IDP_REDIRECT_URI');
  const uris = value
    .split(BEFORE_ADDRESS)
    .flatMap((part) => part.split(OUTSIDE_QUERY))
    .map((entry) => entry.trim())
    .filter(Boolean);
  if (uris.length > 1) return uris;
  const [uri = value] = uris;
  const problem = value && redirectUriProblem(uri);
  if (problem) read.problems.push(`IDP_REDIRECT_URI ${problem}`);
  return [uri];
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
