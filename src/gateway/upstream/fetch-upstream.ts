/** Sends every request to another server, with a deadline and with failures that are safe to report to a client. */

import { cancelQuietly, readBounded } from '../http/body-reader.ts';
import { GatewayError } from '../http/errors.ts';
import { ONE_WRITE_BYTES } from '../http/exchange.ts';
import { IDLE_TIMEOUT_SECONDS } from '../http/idle-timeout.ts';
import { proxyErrorOf } from '../http/proxy-status.ts';
import {
  type CallerRecord,
  type CallName,
  type CallRecord,
  type CallSpan,
  millisecondsSince,
} from '../record/request-record.ts';
import { type FailureTexts, failure, invalid, ownErrorOf } from './call-failure.ts';
import {
  awaitFirstByte,
  declaredLength,
  discardNatively,
  isSuccess,
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
   * `streamed`: the deadline ends with the headers, and the first byte may follow within {@link SILENCE_MS}. The body is
   *   still encoded and is passed on in chunks; only a small one is in memory when the call returns.
   * `begun`: like `streamed`, but the deadline of a success ends with the first byte of its body. A success without a
   *   body, a partial one (206) and a redirect are invalid.
   * `buffered`: the deadline covers the body, which is decoded and in memory when the call returns.
   */
  readonly bodyMode: 'streamed' | 'begun' | 'buffered';
  /** Called with the size so far before more than 16 KB of a buffered body are read; throws if there is no room. */
  readonly admitLarge?: (bytes: number) => void;
  /**
   * Called when the head of a `begun` success has arrived, before its body is read, which takes memory. After false the
   * upstream finishes the body, which nobody gets.
   */
  readonly admitBody?: () => boolean;
  /** The client's signal, for a call that is useless once the client has disconnected. */
  readonly signal?: AbortSignal;
  /** The texts of failures for the client; by default those of the music service. */
  readonly texts?: Partial<FailureTexts>;
}

/** The idle timer of fetch, which also cuts off a stalled body: no shorter than any deadline of the gateway. */
const MIN_IDLE_TIMEOUT_MS = 300_000;

/** How long a streamed body may be silent before its first byte; afterwards Bun's idle timeout bounds it. */
const SILENCE_MS = IDLE_TIMEOUT_SECONDS * 1000;

/** Bounds the decoded size of a buffered body, so that a small one cannot expand into gigabytes. */
const BUFFERED_LIMIT_BYTES = 8 * 1024 * 1024;
/** As much is part of what a call costs. */
const LARGE_BYTES = 16 * 1024;

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
 * @param record the record of the request for which the call is made
 * @throws GatewayError 502 when the server cannot be reached, is late, or does not respond with valid HTTP
 */
export async function fetchUpstream(call: UpstreamCall, record: CallerRecord): Promise<UpstreamResponse> {
  const startedAt = performance.now();
  const span = record.span?.beginCall(call);
  const remember = (outcome: CallRecord['outcome']) => {
    record.calls.push({ call: call.name, outcome, ms: millisecondsSince(startedAt) });
    span?.end(outcome);
  };
  const controller = new AbortController();
  const onLate = () => controller.abort(new DOMException('deadline exceeded', 'TimeoutError'));
  let timer = setTimeout(onLate, call.timeoutMs);
  // The listener is removed together with the timer. AbortSignal.any and AbortSignal.timeout would also cover the body.
  const abort = () => controller.abort(call.signal?.reason);
  call.signal?.addEventListener('abort', abort);
  if (call.signal?.aborted) abort();
  try {
    const fetched = await send(call, record, span, controller.signal);
    if (!isValid(call, fetched)) {
      await cancelQuietly(fetched.body);
      throw invalid(call.texts);
    }
    if (call.bodyMode === 'streamed' && !isSmall(call, fetched)) {
      clearTimeout(timer);
      timer = setTimeout(onLate, SILENCE_MS);
    }
    const refused = discardUnlessAdmitted(call, fetched, onLate);
    const response = refused ?? (await received(call, fetched));
    if (call.bodyMode === 'begun' && !refused && !response.body && isSuccess(response))
      throw invalid(call.texts);
    remember(response.status);
    return response;
  } catch (cause) {
    const error = cause instanceof GatewayError ? ownErrorOf(cause) : proxyErrorOf(cause);
    remember(call.signal?.aborted ? 'client_gone' : error);
    throw cause instanceof GatewayError ? cause : failure(call.texts, cause, error);
  } finally {
    clearTimeout(timer);
    call.signal?.removeEventListener('abort', abort);
  }
}

/** @param onLate ends the fetch when the upstream takes longer than for a head */
function discardUnlessAdmitted(
  { bodyMode, admitBody, timeoutMs }: UpstreamCall,
  response: Response,
  onLate: () => void,
): UpstreamResponse | undefined {
  if (bodyMode !== 'begun' || !isSuccess(response) || (admitBody?.() ?? true)) return undefined;
  const { status, headers } = response;
  const timer = setTimeout(onLate, timeoutMs);
  const discarded = discardNatively(response).finally(() => clearTimeout(timer));
  return { status, headers, body: null, discarded };
}

function send(
  call: UpstreamCall,
  record: CallerRecord,
  span: CallSpan | undefined,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(call.url, {
    method: call.method,
    headers: {
      ...call.headers,
      ...record.headers,
      ...span?.headers,
      // The identity provider does not get it: the user has been there in person.
      ...(call.name !== 'token' && record.clientAddressHeaders),
    },
    ...(call.body === undefined ? {} : { body: call.body }),
    signal,
    // Following a 307 would send the body, perhaps with a refresh token, to another host.
    redirect: 'manual',
    // A streamed body must match its Content-Encoding and Content-Length, so it stays encoded.
    decompress: call.bodyMode === 'buffered',
    // A POST fails on a connection that the upstream has just closed: calls that must not be sent twice use a new one.
    keepalive: REPEATABLE_METHODS.has(call.method),
    timeout: Math.max(call.timeoutMs, MIN_IDLE_TIMEOUT_MS),
  });
}

function isValid({ bodyMode }: UpstreamCall, { status }: Response): boolean {
  if (bodyMode === 'begun' && (status >= 300 ? status < 400 : NO_TRACK_STATUSES.has(status))) return false;
  return status >= 200 && status <= 599;
}

/**
 * Bun drops the Content-Length of a streamed body. A body that leaves in one write is buffered first, so that it keeps
 * the header. A response to HEAD declares a length but has no body to read.
 */
function isSmall({ method }: UpstreamCall, response: Response): boolean {
  return method !== 'HEAD' && declaredLength(response.headers) <= ONE_WRITE_BYTES;
}

function received(call: UpstreamCall, response: Response): UpstreamResponse | Promise<UpstreamResponse> {
  if (call.bodyMode === 'buffered' || isSmall(call, response)) return buffered(call, response);
  const { status, headers, body } = response;
  // The text of a generation's error has a deadline of its own, and a refresh need not wait for the body of a 401.
  if (status === 401 || (call.bodyMode === 'begun' && !isSuccess(response)))
    return { status, headers, body: body && { reader: body.getReader() } };
  // A response whose first chunk is known when it begins leaves in 3 system calls, and any other one in 13.
  return awaitFirstByte(response);
}

async function buffered(call: UpstreamCall, response: Response): Promise<UpstreamResponse> {
  const { status, headers } = response;
  // The decoded size of an encoded body is unknown, so it is read with a bound. Reading natively is faster.
  const willBeDecoded = call.bodyMode === 'buffered' && headers.has('content-encoding');
  const length = declaredLength(headers);
  const isKnownToFit = !willBeDecoded && length <= BUFFERED_LIMIT_BYTES;
  try {
    if (isKnownToFit && length > LARGE_BYTES) call.admitLarge?.(length);
  } catch (refusal) {
    await cancelQuietly(response.body);
    throw refusal;
  }
  let readBytes = 0;
  const body = isKnownToFit
    ? new Uint8Array(await response.arrayBuffer())
    : await readBounded(response.body, BUFFERED_LIMIT_BYTES, (bytes) => {
        readBytes += bytes;
        if (readBytes > LARGE_BYTES) call.admitLarge?.(readBytes);
      });
  if (!body) throw invalid(call.texts);
  return { status, headers, body: body.byteLength ? body : null };
}
