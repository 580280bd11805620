/** Why a call to another server had no valid response. */

/** @see RFC 9209 section 2.3 */
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
