/** The ids by which a request is found in the logs of the gateway and of the upstream. */

import { namedByConnection } from '../http/connection-header.ts';

/** Long enough for a UUID, a ULID or a load balancer's id. None of these characters has a special meaning anywhere. */
const SANE_ID = /^[A-Za-z0-9._~-]{1,64}$/;
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** By header name, as sent to the upstream. */
export interface TraceHeaders extends TraceContext {
  readonly 'x-request-id': string;
}

/**
 * Keeps the client's ids if they are well-formed, and creates the others. A `traceparent` that it creates says that the
 * trace is not sampled (flags 00).
 *
 * @see W3C Trace Context, sections 3.2 (traceparent) and 3.3 (tracestate)
 */
export function traceHeaders(headers: Headers): TraceHeaders {
  const id = fieldOf(headers, 'x-request-id');
  const made = crypto.randomUUID();
  const requestId = id !== null && SANE_ID.test(id) ? id : made;
  const context = receivedContext(headers);
  if (context) return { 'x-request-id': requestId, ...context };
  const traceId = made.replaceAll('-', '');
  return { 'x-request-id': requestId, traceparent: `00-${traceId}-${traceId.slice(16)}-00` };
}

/** The client's trace context; undefined when it sent no valid `traceparent`. */
export function receivedContext(headers: Headers): TraceContext | undefined {
  const traceparent = fieldOf(headers, 'traceparent');
  if (traceparent === null || !TRACEPARENT.test(traceparent)) return undefined;
  const tracestate = fieldOf(headers, 'tracestate');
  return tracestate !== null && TRACESTATE.test(tracestate) ? { traceparent, tracestate } : { traceparent };
}

/** A header that `Connection` names counts as absent, because it is for this hop only. */
function fieldOf(headers: Headers, name: string): string | null {
  const value = headers.get(name);
  return value !== null && namedByConnection(headers.get('connection')).includes(name) ? null : value;
}
