/** What is remembered of a request while it is served; when it has ended, its log line and the metrics come from it. */

import type { ProxyError } from './proxy-error.ts';
import { type TraceHeaders, traceHeaders } from './trace-context.ts';

/** The calls that a request can make to other servers: few names, because they become labels. */
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

export interface CallTrace {
  readonly call: CallName;
  /** The status that was answered, or why there was none. */
  readonly outcome: number | ProxyError | 'client_gone';
  /** Until the head of a streamed answer, the first byte of a generation, the end of any other. */
  readonly ms: number;
}

/** `shared`: another request had begun it; `replayed`: it was over, and its outcome still known; `ended`: by a sign-out. */
export type RefreshTrace = 'renewed' | 'shared' | 'replayed' | 'rejected' | 'unreachable' | 'ended';

/** The `error` codes of an identity provider; `other` is any other code. @see RFC 6749 section 5.2 */
export type OAuthError =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'other';

/**
 * Holds numbers, names from lists of ours and ids of a fixed form, and nothing else that a client or upstream has sent:
 * so no token, code or prompt can get from here into a log.
 */
export class RequestTrace {
  readonly startedAt = performance.now();
  readonly headers: TraceHeaders;
  readonly calls: CallTrace[] = [];
  refresh: RefreshTrace | undefined;
  /**
   * Why a spent refresh token was sent to the upstream: a client had presented the successor (`presented`), or the
   * replay window was over (`late`).
   */
  refreshTokenReused: 'presented' | 'late' | undefined;
  /** Why the identity provider refused the code. */
  oauthError: OAuthError | undefined;
  /** Which of the gateway's own texts the response has; `sessionCookieTwice` also for a response without a text. */
  reason: string | undefined;
  /** Name and code of the error behind it; for a fault of the gateway itself where it happened, too. */
  cause: string | undefined;
  /** Of the body; undefined for the few short ones that are not counted. */
  bytes: number | undefined;
  /** What the client was waiting for when it went away. */
  clientGone: 'waiting' | 'streaming' | undefined;
  /** Whether the upstream broke off in the middle of the body. */
  brokenBody = false;
  /** Resolves when the upstream's part of a streamed body has ended, in whatever way. */
  bodyEnd: Promise<void> | undefined;

  constructor(request: Request) {
    this.headers = traceHeaders(request.headers);
  }

  /** What was answered to nobody says nothing: neither of the gateway nor of the upstream. */
  discardResponse(): void {
    this.reason = undefined;
    this.cause = undefined;
    this.bytes = 0;
  }
}

/** In tenths: more would only make logs longer. */
export function millisecondsSince(startedAt: number): number {
  return Math.round((performance.now() - startedAt) * 10) / 10;
}

const traces = new WeakMap<Request, RequestTrace>();

export function traceOf(request: Request): RequestTrace {
  const known = traces.get(request);
  if (known) return known;
  const trace = new RequestTrace(request);
  traces.set(request, trace);
  return trace;
}
