/** Sends every request to another server, with a deadline and with failures that are safe to report to a client. */

import type { Chunk } from '../http/body-reader.ts';
import { GatewayError } from '../http/errors.ts';
import type { MessageKey } from '../http/messages.ts';
import { type ProxyError, proxyErrorOf, proxyStatus } from '../http/proxy-status.ts';
import {
  type CallName,
  type CallRecord,
  type CallSpan,
  millisecondsSince,
  type RequestRecord,
} from '../record/request-record.ts';
import type { BodyMode } from './body-modes.ts';
import { Deadline } from './deadline.ts';
import { KeptConnections } from './kept-connections.ts';
import type { UpstreamResponse } from './upstream-response.ts';

/** A body that is too long to be kept, so that it can be sent only once. */
interface StreamedUpload {
  readonly headers: Readonly<Record<string, string>>;
  open(observer: ReturnType<Deadline['ofUpload']>): ReadableStream<Chunk>;
  /** Nobody gets the rest. */
  stop(): void;
}

export interface UpstreamCall {
  readonly name: CallName;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Chunk | StreamedUpload;
  /** Until the call returns; its body mode may pause or restart the time. That of an upload begins when it has been sent. */
  readonly timeoutMs: number;
  readonly bodyMode: BodyMode;
  /** The client's signal, for a call that is useless once the client has disconnected. */
  readonly signal?: AbortSignal;
  /** The texts of failures for the client; by default those of the music service. */
  readonly texts?: Partial<typeof TEXTS>;
  /** Whether a sliced body continues with this call. Log, metrics and traces list only the call for the first slice. */
  readonly isLaterSlice?: boolean;
}

const TEXTS: Readonly<Record<'unreachable' | 'late' | 'invalid', MessageKey>> = {
  unreachable: 'upstreamUnreachable',
  late: 'upstreamTimeout',
  invalid: 'upstreamInvalid',
};

/** Fetch ends a call that is idle for longer, also in the middle of a body. The gateway's deadlines have to come first. */
const MIN_IDLE_TIMEOUT_MS = 300_000;

/** Bun itself repeats these when a kept-alive connection turns out to be closed. */
const REPEATABLE_METHODS = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);
const connections = new KeptConnections();

/**
 * Sends the call and returns the response, whatever its status.
 *
 * @param accessToken undefined for a call without a session
 * @throws GatewayError 502 when the server cannot be reached, is late, or does not respond with valid HTTP
 * @see RFC 6750 section 2.1
 */
export async function fetchUpstream(
  call: UpstreamCall,
  record: RequestRecord,
  accessToken?: string,
): Promise<UpstreamResponse> {
  const startedAt = performance.now();
  const span = call.isLaterSlice ? undefined : record.span?.beginCall(call);
  const deadline = new Deadline(call.timeoutMs, call.signal);
  let outcome: CallRecord['outcome'] = 'client_gone';
  try {
    const response = await fetch(call.url, requestOf(call, record, accessToken, span, deadline));
    if (isUpload(call.body)) {
      // An upstream that has responded gets no more of it.
      call.body.stop();
      // The time has not begun when the upstream responds in the middle of the upload.
      deadline.restart(call.timeoutMs);
    }
    const { status, headers } = response;
    const isValid = status >= 200 && status <= 599;
    const body = isValid ? await call.bodyMode.read(response, deadline) : undefined;
    if (body === undefined) throw failureOf(call, 'http_protocol_error');
    outcome = status;
    return { status, headers, body };
  } catch (cause) {
    // An unread body would keep its connection open.
    deadline.abort();
    const error = errorOf(cause);
    if (!call.signal?.aborted && !isOfClient(cause)) outcome = error;
    throw failureOf(call, error, cause);
  } finally {
    deadline.end();
    if (!call.isLaterSlice) record.calls.push({ call: call.name, outcome, ms: millisecondsSince(startedAt) });
    span?.end(outcome);
  }
}

function requestOf(
  { name, method, headers, body, bodyMode, timeoutMs }: UpstreamCall,
  record: RequestRecord,
  accessToken: string | undefined,
  span: CallSpan | undefined,
  deadline: Deadline,
): BunFetchRequestInit {
  const isRepeatable = REPEATABLE_METHODS.has(method) && !isUpload(body);
  return {
    method,
    headers: {
      // The upstream asks for both with every token, also where it responds with audio.
      ...(accessToken !== undefined && {
        accept: 'application/json',
        authorization: `Bearer ${accessToken}`,
      }),
      ...headers,
      ...(isUpload(body) && body.headers),
      ...record.headers,
      ...span?.headers,
      // The identity provider knows the client's address: the client has been there itself.
      ...(name !== 'token' && record.clientAddressHeaders),
    },
    body: isUpload(body) ? body.open(deadline.ofUpload(timeoutMs)) : (body ?? null),
    signal: deadline.signal,
    // Following a 307 would send the body, perhaps with a refresh token, to another host.
    redirect: 'manual',
    decompress: bodyMode.isDecoded,
    // A POST fails on a connection that the upstream has just closed: calls that must not be sent twice use a new one.
    keepalive: isRepeatable,
    session: isRepeatable ? connections.pool() : undefined,
    timeout: Math.max(timeoutMs, MIN_IDLE_TIMEOUT_MS),
  };
}

function isUpload(body: UpstreamCall['body']): body is StreamedUpload {
  return typeof body === 'object' && 'open' in body;
}

/** Whether the client's body was too large, too slow or broken off. */
function isOfClient(cause: unknown): boolean {
  return cause instanceof GatewayError && [400, 408, 413].includes(cause.status);
}

/** Names a failure of the fetch, or one of the gateway's own: the response is invalid, or there is no room for it. */
function errorOf(cause: unknown): ProxyError {
  if (!(cause instanceof GatewayError)) return proxyErrorOf(cause);
  return cause.status === 502 ? 'http_protocol_error' : 'connection_limit_reached';
}

function failureOf({ texts }: UpstreamCall, error: ProxyError, cause?: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause;
  const { unreachable, late, invalid } = { ...TEXTS, ...texts };
  const isInvalid = error === 'http_protocol_error' || error === 'http_response_content_coding';
  const text = error === 'http_response_timeout' ? late : isInvalid ? invalid : unreachable;
  return new GatewayError(502, text, { cause, headers: proxyStatus(error) });
}
