/** Collects facts about a request while it is served; its log line and the metrics are made from them at its end. */

import { type TraceHeaders, traceHeaders } from './trace-context.ts';

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

/** Another method is `other`, so that no client can create labels. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** The calls that a request can make to other servers. There are few names, because they become labels. */
export type CallName =
  | 'token'
  | 'sign-in'
  | 'refresh'
  | 'sign-out'
  | 'me'
  | 'models'
  | 'music'
  | 'proxy'
  | 'public';

export interface CallRecord {
  readonly call: CallName;
  /** The status of the response, or why there was none. */
  readonly outcome: number | ProxyError | 'client_gone';
  /** Until the first byte of a streamed body, or the end of any other response. */
  readonly ms: number;
}

/** The span of a call to another server. */
export interface CallSpan {
  /** Makes this span the parent of what the other server records. */
  readonly headers: Pick<TraceHeaders, 'traceparent'>;
  end(outcome: CallRecord['outcome']): void;
}

/** The span of a request, which exists only while traces are exported. */
export interface RequestSpan {
  beginCall(call: { readonly name: CallName; readonly method: string; readonly url: string }): CallSpan;
  /** Ends the span with what the record contains by then. */
  end(record: RequestRecord): void;
}

/**
 * How the request got its pair. `shared`: from a refresh that another request began. `replayed`: from a finished one.
 * `ended`: not at all, because the session was signed out.
 */
export type RefreshResult = 'renewed' | 'shared' | 'replayed' | 'rejected' | 'unreachable' | 'ended';

/** The `error` codes of an identity provider. @see RFC 6749 section 5.2 */
export const OAUTH_ERRORS = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
] as const;
export type OAuthError = (typeof OAUTH_ERRORS)[number] | 'other';

/**
 * Contains only numbers, names from fixed lists and ids of a fixed form, apart from the client's address, and no other
 * input of a client or upstream, so that no token, code or prompt can reach a log from here.
 */
export class RequestRecord {
  readonly startedAt = performance.now();
  headers: TraceHeaders;
  readonly method: string;
  /** The route's pattern. */
  route = 'unmatched';
  span: RequestSpan | undefined;
  /** The headers that name the client's address to the upstream. They are for it alone, not for a log or a metric. */
  clientAddressHeaders: Readonly<Record<string, string>> | undefined;
  readonly calls: CallRecord[] = [];
  refresh: RefreshResult | undefined;
  /**
   * Why a spent refresh token was sent to the upstream: a client had presented the successor (`presented`), or the
   * replay window was over (`late`).
   */
  refreshTokenReused: 'presented' | 'late' | undefined;
  /** Why the identity provider refused the code. */
  oauthError: OAuthError | undefined;
  /** The status of the response. */
  status = 0;
  /** Until the head of the response, which waits for the first byte of a streamed body. */
  headMs = 0;
  /**
   * Which of the gateway's own texts the response contains; `sessionCookieTwice` also for a response without a text.
   */
  reason: string | undefined;
  /** Name and code of the underlying error, and where it was thrown if it is a fault of the gateway itself. */
  cause: string | undefined;
  /** The size of the body; undefined for a few short bodies that are not counted. */
  bytes: number | undefined;
  /** What the client was waiting for when it disconnected. */
  clientGone: 'waiting' | 'streaming' | undefined;
  /** In how many slices the body was asked of the upstream; undefined for one that is not sliced. */
  slices: number | undefined;
  /** Whether the upstream broke off in the middle of the body. */
  brokenBody = false;

  constructor({ headers, method }: Request) {
    this.headers = traceHeaders(headers);
    this.method = METHODS.has(method) ? method : 'other';
  }

  /** The fields of the log line of a request that has ended; undefined ones are left out of it. */
  logFields() {
    return {
      requestId: this.headers['x-request-id'],
      traceId: this.headers.traceparent.split('-')[1],
      method: this.method,
      route: this.route,
      status: this.status,
      durationMs: millisecondsSince(this.startedAt),
      headMs: this.headMs,
      bytes: this.bytes,
      slices: this.slices,
      upstream: this.calls.length ? this.calls : undefined,
      refresh: this.refresh,
      refreshTokenReused: this.refreshTokenReused,
      oauthError: this.oauthError,
      reason: this.reason,
      cause: this.cause,
      clientGone: this.clientGone,
      brokenBody: this.brokenBody || undefined,
    };
  }
}

/** One decimal: more would only make log lines longer. */
export function millisecondsSince(startedAt: number): number {
  return Math.round((performance.now() - startedAt) * 10) / 10;
}
