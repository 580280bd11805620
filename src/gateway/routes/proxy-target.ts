/** Decides where a proxied request goes: always to the upstream's `/v1/`. */

import { requestTarget } from '../exchange/exchange.ts';
import type { AddressMapping } from '../http/mapped-addresses.ts';

export const PROXY_PREFIX = '/api/upstream';

export interface UpstreamTarget {
  /** The exact address of the request to the upstream. */
  readonly url: string;
  /** Whether it is a GET of one of the two public playback paths without a query, which needs no credentials. */
  readonly isPublic: boolean;
}

/** How the addresses in the response to a call become the gateway's. */
export function mappingOf(requestUrl: string, upstreamUrl: string): AddressMapping {
  return { requestUrl, upstreamUrl, gatewayPath: PROXY_PREFIX };
}

/** The id has unreserved characters only (RFC 3986 section 2.3). Dot segments are rejected before this. */
const PUBLIC_PATH = /^\/v1\/music\/public\/[A-Za-z0-9\-._~]+(?:\/content)?$/;
/** Includes dot segments with parameters, whitespace or a query, such as `..;x`, which some servers treat as `..`. */
const DOT_SEGMENT = /(?:^|\/)\s*\.{1,2}\s*(?:;[^/]*)?(?:[/?#]|$)/;
/** Backslashes, control characters, and code points that are no characters. */
const NEVER_IN_A_PATH = /[\\\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/u;
/** Joiners, direction marks and others that cannot be seen. Names in many scripts have them, but some servers drop them. */
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}]/gu;
const NOTHING = /$^/;
/** A segment with parameters but without a name: some servers drop both. */
const EMPTY_NAME = /\/;/;
/**
 * These endpoints respond with tokens, which only the gateway may see. Some servers drop empty segments, parameters,
 * whitespace and trailing dots before they match a path.
 */
const TOKEN_ENDPOINT = /^\/v1\/[./\s]*(?:;[^/]*\/[./\s]*)*auth(?<=\/\s*auth)[.\s]*(?:[/;?#]|$)/i;
/** A path that can be read in only one way, so it skips the slower checks. */
const PLAIN = /^\/v1(?:\/[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)+(?:\?[A-Za-z0-9_=&-]*)?$/;
const BROKEN_ESCAPE = /%(?![0-9a-f]{2})/i;
const ESCAPES = /(?:%[0-9a-f]{2})+/gi;
/** No legitimate path is still encoded after this many rounds. */
const DECODING_ROUNDS = 3;

/**
 * @returns undefined for a path outside `/v1/`, for one that another server could interpret as such, and for endpoints
 *   that respond with tokens
 */
export function parseTarget(
  { method, url: requestUrl }: Pick<Request, 'method' | 'url'>,
  upstreamUrl: string,
): UpstreamTarget | undefined {
  const target = requestTarget(requestUrl).slice(PROXY_PREFIX.length);
  const isPublic = method === 'GET' && PUBLIC_PATH.test(target);
  if (PLAIN.test(target) && !TOKEN_ENDPOINT.test(target)) return { url: upstreamUrl + target, isPublic };
  const url = URL.parse(upstreamUrl + target);
  if (!url?.href.startsWith(`${upstreamUrl}/v1/`) || target.includes('#')) return undefined;
  // Both forms are checked, as written and as sent, because `new URL` changes some paths.
  for (const each of [target, url.href.slice(upstreamUrl.length)]) {
    const [path = ''] = each.split('?', 1);
    if (isMisleading(path, NOTHING) || isMisleading(path, UNSEEN)) return undefined;
  }
  return { url: url.href, isPublic };
}

/** Whether the path leads elsewhere at a server that drops these characters. */
function isMisleading(path: string, dropped: RegExp): boolean {
  const decoded = decodeCompletely(path, dropped);
  if (decoded === undefined || EMPTY_NAME.test(decoded)) return true;
  // Some servers treat full-width letters, dots and slashes as the ASCII ones.
  const halfWidth = decoded.normalize('NFKC').replaceAll('\\', '/');
  return [decoded, halfWidth].some((each) => DOT_SEGMENT.test(each) || TOKEN_ENDPOINT.test(each));
}

/**
 * Fully percent-decodes the path, and drops these characters whenever they appear. Undefined if that reveals dot segments,
 * more slashes or control characters.
 */
function decodeCompletely(path: string, dropped: RegExp): string | undefined {
  if (BROKEN_ESCAPE.test(path)) return undefined;
  let decoded = path;
  for (let round = 0; round <= DECODING_ROUNDS; round++) {
    if (NEVER_IN_A_PATH.test(decoded) || DOT_SEGMENT.test(decoded)) return undefined;
    if (count(decoded, '/') !== count(path, '/')) return undefined;
    const next = decodeEscapes(decoded)?.replace(dropped, '');
    if (next === decoded || next === undefined) return next;
    decoded = next;
  }
  return undefined;
}

/** Undefined when an escape is not valid UTF-8, such as an overlong slash. */
function decodeEscapes(path: string): string | undefined {
  try {
    return path.replace(ESCAPES, decodeURIComponent);
  } catch {
    return undefined;
  }
}

function count(text: string, character: string): number {
  return text.split(character).length;
}
