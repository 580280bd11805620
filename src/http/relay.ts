/** Passes an upstream's answer on: status, listed headers, and the body as it comes. */

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

export function relay(upstream: Response, mapping: AddressMapping): Response {
  const headers = forwardedResponseHeaders(upstream.headers);
  headers.set('content-security-policy', CONTENT_SECURITY_POLICY);
  const location = headers.get('location');
  if (location !== null) {
    const mapped = mapLocation(location, mapping);
    if (mapped === undefined) headers.delete('location');
    else headers.set('location', mapped);
  }
  return new Response(upstream.body, { status: upstream.status, headers });
}

/** Undefined for an address of the upstream that the gateway does not serve: it would only give the host away. */
function mapLocation(location: string, mapping: AddressMapping): string | undefined {
  const url = URL.parse(location, mapping.requestUrl);
  if (!url) return undefined;
  const served = `${mapping.upstreamUrl}/v1/`;
  if (url.href.startsWith(served)) return mapping.gatewayPath + url.href.slice(mapping.upstreamUrl.length);
  return url.origin === new URL(mapping.upstreamUrl).origin ? undefined : location;
}
