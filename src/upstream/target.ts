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
/** Also as `..;x`, which some servers take for `..`. */
const DOT_SEGMENT = /(?:^|\/)\.{1,2}(?:;[^/]*)?(?:\/|$)/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const NEVER_IN_A_PATH = /[\\\x00-\x1f\x7f]/;
/** A path that is still encoded after so many rounds is not meant well. */
const DECODING_ROUNDS = 3;

/**
 * @returns undefined for a path outside `/v1/`, and for one that another server could read as such
 */
export function parseTarget(requestUrl: string, upstreamUrl: string): UpstreamTarget | undefined {
  const target = requestTarget(requestUrl).slice(PROXY_PREFIX.length);
  const [path = ''] = target.split('?', 1);
  if (target.includes('#') || hidesAnotherPath(path)) return undefined;
  const url = new URL(upstreamUrl + target);
  if (!url.href.startsWith(`${new URL(upstreamUrl).href.replace(/\/$/, '')}/v1/`)) return undefined;
  return { url: url.href, isPublic: PUBLIC_PATH.test(target) };
}

function hidesAnotherPath(path: string): boolean {
  let decoded = path;
  for (let round = 0; round <= DECODING_ROUNDS; round++) {
    if (NEVER_IN_A_PATH.test(decoded) || DOT_SEGMENT.test(decoded)) return true;
    if (count(decoded, '/') !== count(path, '/')) return true;
    const next = round === 0 ? decodeStrictly(decoded) : decodeWhatDecodes(decoded);
    if (next === undefined) return true;
    if (next === decoded) return false;
    decoded = next;
  }
  return true;
}

/** Undefined for a broken escape or one that is not UTF-8, such as an overlong slash. */
function decodeStrictly(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

function decodeWhatDecodes(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function count(text: string, character: string): number {
  return text.split(character).length;
}
