/** Sends every request to another server, with a deadline and with failures that are safe to report to a client. */

import { SILENCE_MS } from '../http/body-reader.ts';
import { GatewayError } from '../http/errors.ts';
import { ONE_WRITE_BYTES } from '../http/exchange.ts';
import type { MessageKey } from '../http/messages.ts';
import type { Body } from '../http/observed-body.ts';
import { proxyErrorOf, proxyStatus } from '../http/proxy-status.ts';
import {
  type CallName,
  type CallRecord,
  millisecondsSince,
  type ProxyError,
  type RequestRecord,
} from '../record/request-record.ts';
import {
  awaitFirstByte,
  declaredLength,
  isSuccess,
  readDecoded,
  readWhole,
  type UpstreamResponse,
} from './upstream-response.ts';

export interface UpstreamCall {
  readonly name: CallName;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly timeoutMs: number;
  /**
   * How much of the response the deadline covers, and what is returned.
   * `streamed`: the deadline ends with the head, and the first byte may follow within {@link SILENCE_MS}. The body is
   *   still encoded and is passed on in chunks; only a small one is in memory when the call returns.
   * `begun`: like `streamed`, but the deadline of a success ends with the first byte of its body. A success without a
   *   body, a partial one (206) and a redirect are invalid.
   * `buffered`: the deadline covers the body, which is decoded and in memory when the call returns.
   */
  readonly bodyMode: 'streamed' | 'begun' | 'buffered';
  /** Called with the size so far before more than 16 KB of a buffered body are read; throws if there is no room. */
  readonly admitLarge?: (bytes: number) => void;
  /** Called with the length of the body, perhaps infinite, before that of a `begun` success is read. After false the upstream finishes it, but no client gets it. */
  readonly admitBody?: (length: number) => boolean;
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

/** The idle timer of fetch, which also cuts off a stalled body: no shorter than any deadline of the gateway. */
const MIN_IDLE_TIMEOUT_MS = 300_000;

/** No Content, Reset Content, Partial Content. */
const NO_TRACK_STATUSES = new Set([204, 205, 206]);

/** Bun itself repeats these when a kept-alive connection turns out to be closed. */
const REPEATABLE_METHODS = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);

/** The longest time that {@link fetchUpstream} takes. */
export function longestMs({ timeoutMs, bodyMode }: UpstreamCall): number {
  return timeoutMs + (bodyMode === 'streamed' ? SILENCE_MS : 0);
}

/**
 * Sends the call and returns the response, whatever its status.
 *
 * @throws GatewayError 502 when the server cannot be reached, is late, or does not respond with valid HTTP
 */
export async function fetchUpstream(call: UpstreamCall, record: RequestRecord): Promise<UpstreamResponse> {
  const { method, bodyMode, timeoutMs, signal: client, isLaterSlice } = call;
  const startedAt = performance.now();
  const span = isLaterSlice ? undefined : record.span?.beginCall(call);
  const remember = (outcome: CallRecord['outcome']) => {
    if (isLaterSlice) return;
    record.calls.push({ call: call.name, outcome, ms: millisecondsSince(startedAt) });
    span?.end(outcome);
  };
  const controller = new AbortController();
  const onLate = () => controller.abort(new DOMException('deadline exceeded', 'TimeoutError'));
  let deadline = setTimeout(onLate, timeoutMs);
  // The listener is removed together with the timer. AbortSignal.any and AbortSignal.timeout would also cover the body.
  const onClientGone = () => controller.abort(client?.reason);
  client?.addEventListener('abort', onClientGone);
  if (client?.aborted) onClientGone();
  try {
    const response = await fetch(call.url, {
      method,
      headers: {
        ...call.headers,
        ...record.headers,
        ...span?.headers,
        // The identity provider does not get it: the user has been there in person.
        ...(call.name !== 'token' && record.clientAddressHeaders),
      },
      body: call.body ?? null,
      signal: controller.signal,
      // Following a 307 would send the body, perhaps with a refresh token, to another host.
      redirect: 'manual',
      // A streamed body must match its Content-Encoding and Content-Length, so it stays encoded.
      decompress: bodyMode === 'buffered',
      // A POST fails on a connection that the upstream has just closed: calls that must not be sent twice use a new one.
      keepalive: REPEATABLE_METHODS.has(method),
      timeout: Math.max(timeoutMs, MIN_IDLE_TIMEOUT_MS),
    });
    const { status, headers } = response;
    // Bun drops the Content-Length of a streamed body. A body that leaves in one write is read first, so that it keeps it.
    const isSmall = bodyMode !== 'buffered' && declaredLength(headers) <= ONE_WRITE_BYTES;
    if (bodyMode === 'streamed' && !isSmall) {
      clearTimeout(deadline);
      deadline = setTimeout(onLate, SILENCE_MS);
    }
    if (isTrack(call, response) && call.admitBody?.(declaredLength(headers)) === false) {
      const longest = setTimeout(onLate, timeoutMs);
      const end = () => clearTimeout(longest);
      // The body never becomes a JavaScript object, so that it takes little memory.
      const discarded = Bun.write('/dev/null', response).then(end, end);
      remember(status);
      return { status, headers, body: null, discarded };
    }
    const body = await bodyOf(call, response, isSmall);
    if (body === undefined) throw failureOf(call, 'http_protocol_error');
    remember(status);
    return { status, headers, body };
  } catch (cause) {
    // An unread body would keep its connection open.
    controller.abort();
    const error = errorOf(cause);
    remember(client?.aborted ? 'client_gone' : error);
    throw failureOf(call, error, cause);
  } finally {
    clearTimeout(deadline);
    client?.removeEventListener('abort', onClientGone);
  }
}

function isTrack({ bodyMode }: UpstreamCall, response: Response): boolean {
  return bodyMode === 'begun' && isSuccess(response) && !NO_TRACK_STATUSES.has(response.status);
}

/** Reads as much of the body as the call wants; undefined when the response is invalid. */
function bodyOf(
  call: UpstreamCall,
  response: Response,
  isSmall: boolean,
): Body | Promise<Body | undefined> | undefined {
  const { status, body } = response;
  const isBegun = call.bodyMode === 'begun';
  const hasTrack = isTrack(call, response);
  if (status < 200 || status > 599 || (isBegun && !hasTrack && status < 400)) return undefined;
  if (call.bodyMode === 'buffered') return readDecoded(response, call.admitLarge);
  if (hasTrack)
    return (isSmall ? readWhole(response) : awaitFirstByte(body)).then((begun) => begun ?? undefined);
  if (isSmall) return readWhole(response);
  // The text of a generation's error has a deadline of its own, and a refresh need not wait for the body of a 401.
  if (status === 401 || isBegun) return body && { reader: body.getReader() };
  return awaitFirstByte(body);
}

/** Names a failure of the fetch, or one of the gateway's own: the response is invalid, or there is no room for it. */
function errorOf(cause: unknown): ProxyError {
  if (!(cause instanceof GatewayError)) return proxyErrorOf(cause);
  return cause.status === 502 ? 'http_protocol_error' : 'connection_limit_reached';
}

/** Without a cause it is the response that is not what it must be. */
function failureOf({ texts }: UpstreamCall, error: ProxyError, cause?: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause;
  const { unreachable, late, invalid } = { ...TEXTS, ...texts };
  const isInvalid = cause === undefined || error === 'http_response_content_coding';
  const text = error === 'http_response_timeout' ? late : isInvalid ? invalid : unreachable;
  return new GatewayError(502, text, { cause, headers: proxyStatus(error) });
}
