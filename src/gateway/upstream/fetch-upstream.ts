/** The one way out: a request to another server, with a deadline and failures that a client may hear of. */

import { ONE_PIECE_BYTES } from '../http/complete-response.ts';
import { GatewayError } from '../http/errors.ts';
import { type Message, messages } from '../http/messages.ts';
import { proxyErrorOf, proxyStatus } from '../http/proxy-status.ts';
import { readBounded } from '../http/read-bounded.ts';
import type { ProxyError } from '../trace/proxy-error.ts';
import {
  type CallName,
  type CallTrace,
  millisecondsSince,
  type RequestTrace,
} from '../trace/request-trace.ts';
import { begun, discard, isSuccess, type UpstreamResponse } from './upstream-response.ts';

interface FailureTexts {
  readonly unreachable: Message;
  readonly late: Message;
  readonly invalid: Message;
}

export interface UpstreamCall {
  readonly name: CallName;
  /** Of the request for which the call is made. */
  readonly trace: RequestTrace;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly timeoutMs: number;
  /**
   * `streamed`: the deadline ends with the headers, and the body is passed on as it comes and as it is encoded; only
   *   one that is small is here when the call returns.
   * `begun`: like `streamed`, but the deadline of a success ends with the first byte of its body. A success without a
   *   body, a part of one (206) and a redirect are invalid.
   * `whole`: the deadline covers the body, which is here, decoded, when the call returns.
   */
  readonly bodyMode: 'streamed' | 'begun' | 'buffered';
  /** Called before more than 64 KB of a whole body are read, with what is known of its size; throws without room. */
  readonly admitLarge?: (bytes: number) => void;
  /** The client's signal, for a call that is of no use once the client has gone. */
  readonly signal?: AbortSignal;
  /** What the client hears of a failure; of the music service unless given. */
  readonly texts?: Partial<FailureTexts>;
}

/** Fetch's own idle timer, which also cuts off a body that stalls: not shorter than any deadline of ours. */
const MIN_IDLE_TIMEOUT_MS = 300_000;

/** Far more than any answer that is not streamed; decoded, so that a small one cannot unfold into gigabytes. */
const BUFFERED_LIMIT_BYTES = 8 * 1024 * 1024;
const LARGE_BYTES = 64 * 1024;

/** No Content, Reset Content, Partial Content. */
const HAS_NO_TRACK = new Set([204, 205, 206]);

/** Bun repeats these by itself when a kept-alive connection turns out to be closed. */
const REPEATABLE_METHODS = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);

/**
 * Sends the call and returns the answer, whatever its status.
 *
 * @throws GatewayError 502 when the server cannot be reached, is late, or answers with what is not HTTP
 */
export async function fetchUpstream(call: UpstreamCall): Promise<UpstreamResponse> {
  const startedAt = performance.now();
  const remember = (outcome: CallTrace['outcome']) =>
    call.trace.calls.push({ call: call.name, outcome, ms: millisecondsSince(startedAt) });
  const controller = new AbortController();
  const timer = setTimeout(
    () => controller.abort(new DOMException('deadline exceeded', 'TimeoutError')),
    call.timeoutMs,
  );
  // Taken off again with the timer: AbortSignal.any and AbortSignal.timeout would go on to cover the body.
  const abort = () => controller.abort(call.signal?.reason);
  call.signal?.addEventListener('abort', abort);
  if (call.signal?.aborted) abort();
  try {
    const fetched = await send(call, controller.signal);
    if (!isValid(call, fetched)) throw await refuse(call, fetched);
    const response = await received(call, fetched);
    if (!response.body && mustBegin(call, response)) throw invalid(call);
    remember(response.status);
    return response;
  } catch (cause) {
    const error = cause instanceof GatewayError ? ownErrorOf(cause) : proxyErrorOf(cause);
    remember(call.signal?.aborted ? 'client_gone' : error);
    throw cause instanceof GatewayError ? cause : failure(call, cause, error);
  } finally {
    clearTimeout(timer);
    call.signal?.removeEventListener('abort', abort);
  }
}

function send(call: UpstreamCall, signal: AbortSignal): Promise<Response> {
  return fetch(call.url, {
    method: call.method,
    headers: { ...call.headers, ...call.trace.headers },
    ...(call.body === undefined ? {} : { body: call.body }),
    signal,
    // A followed 307 would carry the body, perhaps a refresh token, to another host.
    redirect: 'manual',
    // A streamed body must stay the bytes that its Content-Encoding and Content-Length describe.
    decompress: call.bodyMode === 'buffered',
    // A connection that the upstream has just closed fails a POST: what must not be sent twice gets a fresh one.
    keepalive: REPEATABLE_METHODS.has(call.method),
    timeout: Math.max(call.timeoutMs, MIN_IDLE_TIMEOUT_MS),
  });
}

function isValid({ bodyMode }: UpstreamCall, { status }: Response): boolean {
  if (bodyMode === 'begun' && (status >= 300 ? status < 400 : HAS_NO_TRACK.has(status))) return false;
  return status >= 200 && status <= 599;
}

async function refuse(call: UpstreamCall, response: Response): Promise<GatewayError> {
  await discard(response);
  return invalid(call);
}

/**
 * Bun drops the Content-Length of a streamed body. One that leaves in one piece is read first, so that it keeps it; the
 * length that HEAD announces has no body.
 */
function isSmall({ method }: UpstreamCall, response: Response): boolean {
  return method !== 'HEAD' && declaredLength(response) <= ONE_PIECE_BYTES;
}

function received(call: UpstreamCall, response: Response): UpstreamResponse | Promise<UpstreamResponse> {
  if (call.bodyMode === 'buffered' || isSmall(call, response)) return buffered(call, response);
  return mustBegin(call, response) ? begun(response) : response;
}

function mustBegin(call: UpstreamCall, response: UpstreamResponse): boolean {
  return call.bodyMode === 'begun' && isSuccess(response);
}

async function buffered(call: UpstreamCall, response: Response): Promise<UpstreamResponse> {
  const { status, headers } = response;
  // What an encoded body unfolds into is not known; the native way costs a quarter of the bounded one.
  const isDecoded = call.bodyMode === 'buffered' && headers.has('content-encoding');
  const isBounded = !isDecoded && declaredLength(response) <= BUFFERED_LIMIT_BYTES;
  try {
    if (isBounded && declaredLength(response) > LARGE_BYTES) call.admitLarge?.(declaredLength(response));
  } catch (refusal) {
    await discard(response);
    throw refusal;
  }
  let readBytes = 0;
  const body = isBounded
    ? new Uint8Array(await response.arrayBuffer())
    : await readBounded(response.body, BUFFERED_LIMIT_BYTES, (bytes) => {
        readBytes += bytes;
        if (readBytes > LARGE_BYTES) call.admitLarge?.(readBytes);
      });
  if (!body) throw invalid(call);
  return { status, headers, body: body.byteLength ? body : null };
}

/** Our own errors are of an answer that is none, or for which there is no room. */
function ownErrorOf({ status }: GatewayError): ProxyError {
  return status === 502 ? 'http_protocol_error' : 'connection_limit_reached';
}

/** Infinite when it is not known. */
function declaredLength({ headers }: Response): number {
  return Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY);
}

function failure(call: UpstreamCall, cause: unknown, error: ProxyError): GatewayError {
  const { late, unreachable, invalid } = textsOf(call);
  const isInvalid = error === 'http_response_content_coding';
  const text = error === 'http_response_timeout' ? late : isInvalid ? invalid : unreachable;
  return new GatewayError(502, text, { cause, headers: proxyStatus(error) });
}

function invalid(call: UpstreamCall): GatewayError {
  return new GatewayError(502, textsOf(call).invalid, { headers: proxyStatus('http_protocol_error') });
}

function textsOf({ texts }: UpstreamCall): FailureTexts {
  return {
    unreachable: messages.upstreamUnreachable,
    late: messages.upstreamTimeout,
    invalid: messages.upstreamInvalid,
    ...texts,
  };
}
