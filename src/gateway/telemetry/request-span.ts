/** The spans of a request and of its calls, by OpenTelemetry's conventions for HTTP. */

import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace as traceApi,
} from '@opentelemetry/api';
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  HTTP_REQUEST_METHOD_VALUE_OTHER,
} from '@opentelemetry/semantic-conventions';
import type { CallRecord, CallSpan, RequestRecord, RequestSpan } from '../record/request-record.ts';
import type { TraceContext } from '../record/trace-context.ts';

/** Begins the attributes that are not in the conventions; they are named like the fields of the log. */
const OWN = 'music_gateway.';

type BeginCall = Parameters<RequestSpan['beginCall']>[0];

/**
 * Begins the span of a request. No span has an attribute with a path, a query, an address of a client or a user agent,
 * although the conventions ask for them: they would carry ids and personal data to another system.
 *
 * @param received the client's trace context, which the span continues
 * @see https://opentelemetry.io/docs/specs/semconv/http/http-spans/
 */
export function beginSpan(
  tracer: Tracer,
  received: TraceContext | undefined,
  { route, method }: RequestRecord,
): RequestSpan & { readonly traceparent: string } {
  const isMatched = route !== 'unmatched';
  const isKnown = method !== 'other';
  const name = isKnown ? method : 'HTTP';
  const attributes = {
    [ATTR_HTTP_REQUEST_METHOD]: isKnown ? method : HTTP_REQUEST_METHOD_VALUE_OTHER,
    ...(isMatched && { [ATTR_HTTP_ROUTE]: route }),
  };
  const options = { kind: SpanKind.SERVER, attributes };
  const parent = received ? contextOf(received) : ROOT_CONTEXT;
  const span = tracer.startSpan(isMatched ? `${name} ${route}` : name, options, parent);
  const context = traceApi.setSpan(ROOT_CONTEXT, span);
  return {
    traceparent: traceparentOf(span),
    beginCall: (call) => beginCall(tracer, context, call),
    end: (record) => endRequest(span, record),
  };
}

function beginCall(tracer: Tracer, context: Context, { name, method, url }: BeginCall): CallSpan {
  const { protocol, hostname, port } = new URL(url);
  const attributes = {
    [ATTR_HTTP_REQUEST_METHOD]: method,
    // A URL has an IPv6 address in brackets.
    [ATTR_SERVER_ADDRESS]: hostname.replace(/^\[|\]$/g, ''),
    [ATTR_SERVER_PORT]: Number(port) || (protocol === 'https:' ? 443 : 80),
    [`${OWN}call`]: name,
  };
  const span = tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, context);
  return { headers: { traceparent: traceparentOf(span) }, end: (outcome) => endCall(span, outcome) };
}

function endRequest(
  span: Span,
  { status, reason, refresh, slices, clientGone, brokenBody }: RequestRecord,
): void {
  // A client that disconnected before the head has received no status, and no error either.
  const wasSent = clientGone !== 'waiting';
  if (wasSent) span.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, status);
  if (reason) span.setAttribute(`${OWN}reason`, reason);
  if (refresh) span.setAttribute(`${OWN}refresh`, refresh);
  if (slices) span.setAttribute(`${OWN}slices`, slices);
  if (clientGone) span.setAttribute(`${OWN}client_gone`, clientGone);
  if (brokenBody) fail(span, 'http_response_incomplete');
  else if (wasSent && status >= 500) fail(span, String(status));
  span.end();
}

function endCall(span: Span, outcome: CallRecord['outcome']): void {
  if (typeof outcome === 'number') span.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, outcome);
  if (typeof outcome !== 'number' || outcome >= 400) fail(span, String(outcome));
  span.end();
}

function fail(span: Span, errorType: string): void {
  span.setAttribute(ATTR_ERROR_TYPE, errorType).setStatus({ code: SpanStatusCode.ERROR });
}

/** @see W3C Trace Context, section 3.2 */
function contextOf({ traceparent, tracestate }: TraceContext): Context {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  return traceApi.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  });
}

function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}
