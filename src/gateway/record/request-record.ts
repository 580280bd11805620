/** Collects facts about a request, from which its log line and the metrics are made when it has ended. */

import type { PoolName } from '../http/errors.ts';
import type { ProxyError } from '../http/proxy-status.ts';
import { type TraceHeaders, traceHeaders } from './trace-context.ts';

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
  /** Makes this span the parent of the other server's spans. */
  readonly headers: Pick<TraceHeaders, 'traceparent'>;
  end(outcome: CallRecord['outcome']): void;
}

/** The span of a request, which exists only while traces are exported. */
export interface RequestSpan {
  beginCall(call: { readonly name: CallName; readonly method: string; readonly url: string }): CallSpan;
  end(record: RequestRecord): void;
}

/** Why the gateway has broken the connection of a client, nearly always during a body. */
export type CutOff = 'stopped reading' | 'no memory' | 'room for others' | 'shutdown';

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

/** What is wrong with a successful response that should contain tokens. The names are ours, no text of the response. */
export type TokenProblem = 'no JSON object' | `${'no' | 'invalid'} ${'access_token' | 'refresh_token'}`;

/**
 * Apart from what the request's calls carry, it contains only numbers, names from fixed lists, ids of a fixed form and
 * keyed hashes, so that no token, code or prompt can reach a log from here.
 */
export class RequestRecord {
  readonly startedAt = performance.now();
  // Its calls carry these three. An object for them would cost each request one.
  headers: TraceHeaders;
  span: RequestSpan | undefined;
  /** The headers that name the client's address to the upstream; not for a log or a metric. */
  clientAddressHeaders: Readonly<Record<string, string>> | undefined;
  readonly method: string;
  /** The route's pattern. */
  route = 'unmatched';
  readonly calls: CallRecord[] = [];
  /** `shared`: with a request that began the refresh. `replayed`: from an earlier one. `ended`: by a sign-out. */
  refresh: 'renewed' | 'shared' | 'replayed' | 'rejected' | 'unreachable' | 'ended' | undefined;
  /** A keyed hash of the refresh token that the request came with, if the log shall have it. */
  session: string | undefined;
  /** The same of the refresh token that the response sets. */
  sessionAfter: string | undefined;
  /** Why a spent token was sent to the upstream. `late`: the replay window was over, and no client had its successor. */
  refreshTokenReused: 'presented' | 'late' | undefined;
  /** Why the identity provider refused the code. */
  oauthError: OAuthError | undefined;
  /** Why a token exchange, sign-in or refresh with a success gave no tokens. */
  tokenProblem: TokenProblem | undefined;
  /** Whether a repetition of this generation would be made and paid for as another one. */
  lacksIdempotencyKey = false;
  status = 0;
  /** Until the head of the response, which waits for the first byte of a streamed body. */
  headMs = 0;
  /** Which of the gateway's own texts the response has; `sessionCookieTwice` also for a response without a text. */
  reason: string | undefined;
  /** Which limit has refused it. */
  pool: PoolName | undefined;
  /** Name and code of the underlying error, and where it was thrown if it is a fault of the gateway itself. */
  cause: string | undefined;
  /** The size of the body; undefined for a few short bodies that are not counted. */
  bytes: number | undefined;
  /** What the client was waiting for when it disconnected. */
  clientGone: 'waiting' | 'streaming' | undefined;
  /** How many slices the upstream was asked for; undefined for a body that is not sliced. */
  slices: number | undefined;
  cutOff: CutOff | undefined;
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
      session: this.session,
      sessionAfter: this.sessionAfter,
      refresh: this.refresh,
      refreshTokenReused: this.refreshTokenReused,
      oauthError: this.oauthError,
      tokenProblem: this.tokenProblem,
      reason: this.reason,
      pool: this.pool,
      cause: this.cause,
      clientGone: this.clientGone,
      cutOff: this.cutOff,
      brokenBody: this.brokenBody || undefined,
    };
  }
}

/** Rounded to one decimal, which keeps log lines short. */
export function millisecondsSince(startedAt: number): number {
  return Math.round((performance.now() - startedAt) * 10) / 10;
}
