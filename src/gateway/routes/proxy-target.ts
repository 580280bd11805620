/** Decides where a proxied request goes: to `/v1/` of the upstream and nowhere else. */

import { requestTarget } from '../http/request-target.ts';

export const PROXY_PREFIX = '/api/upstream';

export interface UpstreamTarget {
  /** The exact address that will be sent. */
  readonly url: string;
  /** Whether the upstream serves this without credentials: the two public playback paths, without a query. */
  readonly isPublic: boolean;
}

/** An id of unreserved characters (RFC 3986 section 2.3); dot segments never get this far. */
const PUBLIC_PATH = /^\/v1\/music\/public\/[A-Za-z0-9\-._~]+(?:\/content)?$/;
/** Also with parameters or blanks, as in `..;x`, which some servers take for `..`. */
const DOT_SEGMENT = /(?:^|\/)\s*\.{1,2}\s*(?:;[^/]*)?(?:\/|$)/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const NEVER_IN_A_PATH = /[\\\x00-\x1f\x7f]/;
/** A segment that has parameters and no name: some servers drop both. */
const EMPTY_NAME = /\/;/;
/**
 * These respond with tokens, which are for the gateway alone. Some servers drop empty segments, parameters, blanks and
 * trailing dots before they look for them.
 */
const TOKEN_ENDPOINT = /^\/v1\/(?:[.\s]*(?:;[^/]*)?\/)*\s*auth[.\s]*(?:[/;?#]|$)/i;
/** Nothing in it can be read in two ways, so it needs none of the tests: they cost 6 us, a tenth of a short call. */
const PLAIN = /^\/v1(?:\/[A-Za-z0-9_-]+)+(?:\?[A-Za-z0-9_=&-]*)?$/;
const BROKEN_ESCAPE = /%(?![0-9a-f]{2})/i;
const ESCAPES = /(?:%[0-9a-f]{2})+/gi;
/** A path that is still encoded after so many rounds is not meant well. */
const DECODING_ROUNDS = 3;

/**
 * @returns undefined for a path outside `/v1/`, for one that another server could read as such, and for the endpoints
 *   that answer with tokens
 */
export function parseTarget(requestUrl: string, upstreamUrl: string): UpstreamTarget | undefined {
  const target = requestTarget(requestUrl).slice(PROXY_PREFIX.length);
  const isPublic = PUBLIC_PATH.test(target);
  if (PLAIN.test(target) && !TOKEN_ENDPOINT.test(target)) return { url: upstreamUrl + target, isPublic };
  const url = URL.parse(upstreamUrl + target);
  if (!url?.href.startsWith(`${upstreamUrl}/v1/`) || target.includes('#')) return undefined;
  // As it was written and as it will be sent: `new URL` makes another path of some.
  for (const each of [target, url.href.slice(upstreamUrl.length)]) {
    const [path = ''] = each.split('?', 1);
    const meant = decodeCompletely(path);
    if (meant === undefined || EMPTY_NAME.test(meant)) return undefined;
    // Some servers read letters, dots and slashes of full width as the usual ones.
    const narrow = meant.normalize('NFKC').replaceAll('\\', '/');
    if ([meant, narrow].some((each) => DOT_SEGMENT.test(each) || TOKEN_ENDPOINT.test(each))) return undefined;
  }
  return { url: url.href, isPublic };
}

/** What the path says once nothing in it is encoded; undefined when it says another path than it shows. */
function decodeCompletely(path: string): string | undefined {
  if (BROKEN_ESCAPE.test(path)) return undefined;
  let decoded = path;
  for (let round = 0; round <= DECODING_ROUNDS; round++) {
    if (NEVER_IN_A_PATH.test(decoded) || DOT_SEGMENT.test(decoded)) return undefined;
    if (count(decoded, '/') !== count(path, '/')) return undefined;
    const next = decodeEscapes(decoded);
    if (next === decoded || next === undefined) return next;
    decoded = next;
  }
  return undefined;
}

/** Undefined when an escape is not UTF-8, such as an overlong slash. */
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
