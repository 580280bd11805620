/** The names by which a request is found again in the logs of the gateway and of the upstream. */

import { namedByConnection } from './connection-header.ts';

/** Long enough for a UUID, a ULID or a load balancer's id, and of characters that mean nothing anywhere. */
const SANE_ID = /^[A-Za-z0-9._~-]{1,64}$/;
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** By header, as they are sent to the upstream. */
export interface TraceHeaders {
  readonly 'x-request-id': string;
  readonly traceparent: string;
  readonly tracestate?: string;
}

/**
 * The client's own names where they can be trusted to be names, and new ones otherwise. The gateway records no spans, so
 * a valid `traceparent` is passed on as it is, and one of ours does not ask for any (flags 00).
 *
 * @see W3C Trace Context, sections 3.2 (traceparent) and 3.3 (tracestate)
 */
export function traceHeaders(headers: Headers): TraceHeaders {
  const id = fieldOf(headers, 'x-request-id');
  const traceparent = fieldOf(headers, 'traceparent');
  const made = crypto.randomUUID();
  const requestId = id !== null && SANE_ID.test(id) ? id : made;
  if (traceparent === null || !TRACEPARENT.test(traceparent)) {
    const traceId = made.replaceAll('-', '');
    return { 'x-request-id': requestId, traceparent: `00-${traceId}-${traceId.slice(16)}-00` };
  }
  const tracestate = fieldOf(headers, 'tracestate');
  return {
    'x-request-id': requestId,
    traceparent,
    ...(tracestate !== null && TRACESTATE.test(tracestate) ? { tracestate } : {}),
  };
}

/** Null also for a header that `Connection` names: it was for this hop alone. */
function fieldOf(headers: Headers, name: string): string | null {
  const value = headers.get(name);
  return value !== null && namedByConnection(headers.get('connection')).includes(name) ? null : value;
}

export function traceIdOf({ traceparent }: TraceHeaders): string {
  return traceparent.split('-')[1] ?? '';
}
