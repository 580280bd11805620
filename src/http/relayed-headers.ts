/** The headers with which an upstream's answer is passed on. */

import { forwardedResponseHeaders } from './forwarded-headers.ts';

/** Keeps the upstream's HTML from running on the origin that holds the session cookies. */
const CONTENT_SECURITY_POLICY = "sandbox; default-src 'none'";

export interface AddressMapping {
  /** The address that was asked, against which a relative Location is read. */
  readonly requestUrl: string;
  /** The upstream's base address, and the gateway's path that stands for it. */
  readonly upstreamUrl: string;
  readonly gatewayPath: string;
}

/** The headers of the gateway's answer. */
export function relayedHeaders(upstream: Headers, mapping: AddressMapping): Record<string, string> {
  const headers = forwardedResponseHeaders(upstream);
  headers['content-security-policy'] = CONTENT_SECURITY_POLICY;
  if (headers['location'] !== undefined) {
    const mapped = mapLocation(headers['location'], mapping);
    if (mapped === undefined) delete headers['location'];
    else headers['location'] = mapped;
  }
  return headers;
}

/** Undefined for an address of the upstream that the gateway does not serve: it would only give the host away. */
function mapLocation(location: string, mapping: AddressMapping): string | undefined {
  const url = URL.parse(location, mapping.requestUrl);
  if (!url) return undefined;
  const served = `${mapping.upstreamUrl}/v1/`;
  if (url.href.startsWith(served)) return mapping.gatewayPath + url.href.slice(mapping.upstreamUrl.length);
  return url.origin === new URL(mapping.upstreamUrl).origin ? undefined : location;
}
