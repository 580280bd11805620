/** Decides with which headers an upstream's response is relayed. */

import { forwardedResponseHeaders } from './forwarded-headers.ts';
import { type AddressMapping, mapAddress, mapLinks } from './mapped-addresses.ts';

/** Keeps HTML from the upstream from running scripts on the origin that has the session cookies. */
export const CONTENT_SECURITY_POLICY = "sandbox; default-src 'none'";

/** How each header with addresses is mapped. A header is dropped when its mapping returns undefined. */
const MAPPED: readonly (readonly [string, (value: string, mapping: AddressMapping) => string | undefined])[] =
  [
    ['location', mapAddress],
    ['content-location', mapAddress],
    ['link', mapLinks],
  ];

/** @see RFC 9110 section 5.6.2 */
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;

/**
 * Returns the headers of the gateway's response.
 *
 * @param vary the gateway's own `Vary`
 */
export function relayedHeaders(
  upstream: Headers,
  mapping: AddressMapping,
  vary: string,
): Record<string, string> {
  const headers = forwardedResponseHeaders(upstream);
  headers['content-security-policy'] = CONTENT_SECURITY_POLICY;
  headers['vary'] = headers['vary'] === undefined ? vary : mergedVary(vary, headers['vary']);
  for (const [name, map] of MAPPED) {
    const value = headers[name];
    if (value === undefined) continue;
    const mapped = map(value, mapping);
    if (mapped === undefined) delete headers[name];
    else headers[name] = mapped;
  }
  return headers;
}

/** @see RFC 9110 section 12.5.5: `*` includes every name. */
function mergedVary(own: string, upstream: string): string {
  const names = new Map<string, string>();
  for (const member of `${own},${upstream}`.split(',')) {
    const name = member.trim();
    if (name === '*') return '*';
    if (TOKEN.test(name) && !names.has(name.toLowerCase())) names.set(name.toLowerCase(), name);
  }
  return [...names.values()].join(', ');
}
