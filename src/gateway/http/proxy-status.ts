/** Classifies failures on the way to the upstream, so that clients can tell "never sent" from "may have happened". */

import { errorCode } from './error-summary.ts';

/** Why a call to another server had no valid response. @see RFC 9209 section 2.3 */
export type ProxyError =
  | 'connection_limit_reached'
  | 'connection_refused'
  | 'connection_terminated'
  | 'destination_ip_unroutable'
  | 'destination_unavailable'
  | 'dns_error'
  | 'http_protocol_error'
  | 'http_response_content_coding'
  | 'http_response_incomplete'
  | 'http_response_timeout'
  | 'tls_certificate_error'
  | 'tls_protocol_error';

/** Bun's fetch error codes. */
const BY_CODE: Readonly<Record<string, ProxyError>> = {
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_terminated',
  EPIPE: 'connection_terminated',
  EHOSTUNREACH: 'destination_ip_unroutable',
  ENETUNREACH: 'destination_ip_unroutable',
  ENOTFOUND: 'dns_error',
  EAI_AGAIN: 'dns_error',
  EPROTO: 'tls_protocol_error',
  InvalidHTTPResponse: 'http_protocol_error',
  Malformed_HTTP_Response: 'http_protocol_error',
  UnrequestedUpgrade: 'http_protocol_error',
  ZlibError: 'http_response_content_coding',
  BrotliDecompressionError: 'http_response_content_coding',
  ZstdDecompressionError: 'http_response_content_coding',
};

const CERTIFICATE_CODE = /CERT|SELF_SIGNED|UNABLE_TO_/;

/** Classifies a failed fetch. An unknown failure counts as an incomplete response. */
export function proxyErrorOf(cause: unknown): ProxyError {
  if (cause instanceof DOMException && cause.name === 'TimeoutError') return 'http_response_timeout';
  const code = errorCode(cause);
  return (
    BY_CODE[code] ?? (CERTIFICATE_CODE.test(code) ? 'tls_certificate_error' : 'http_response_incomplete')
  );
}

/** The `Proxy-Status` header of a response that the gateway sends instead of the upstream's. */
export function proxyStatus(error: ProxyError): Readonly<Record<string, string>> {
  return { 'proxy-status': `music-gateway; error=${error}` };
}

/** Whether a status reports a problem of the upstream rather than of the request. */
export function isOutage(status: number): boolean {
  return status === 429 || status >= 500;
}
