/** Receives traces as a collector would, and decodes them by the OpenTelemetry project's own definitions. */

import { gunzipSync } from 'node:zlib';
import otlp from 'otlp-definitions/build/src/generated/root.js';

const { ExportTraceServiceRequest } = Object(otlp).opentelemetry.proto.collector.trace.v1;
const AS_TEXT = { longs: String, bytes: String, enums: String, defaults: true, oneofs: false };

/** What the definitions, which have no types, make of an export. */
interface Exported {
  readonly resource: { readonly attributes: Attributes };
  readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
}
type Attributes = readonly { key: string; value: { stringValue?: string; intValue?: string } }[];
type Texts = Record<'name' | 'kind' | 'traceId' | 'spanId' | 'parentSpanId' | 'traceState', string>;
type Span = Texts & { readonly attributes: Attributes; readonly status: { code: string } | null };

/** @param respond decides the response to each export */
export function startTraceReceiver(respond: () => Response | Promise<Response> = () => new Response(null)) {
  const received: { path: string; headers: Headers; bytes: Buffer }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const body = await request.bytes();
      const isZipped = request.headers.get('content-encoding') === 'gzip';
      const bytes = Buffer.from(isZipped ? gunzipSync(body) : body);
      received.push({ path: new URL(request.url).pathname, headers: request.headers, bytes });
      return respond();
    },
  });
  return {
    url: server.url.origin,
    received,
    /** All spans so far, in the order in which they ended. */
    get spans() {
      return received.flatMap(({ bytes }) => spansOf(bytes));
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

function spansOf(bytes: Uint8Array) {
  const message = ExportTraceServiceRequest.toObject(ExportTraceServiceRequest.decode(bytes), AS_TEXT);
  const exported: readonly Exported[] = message.resourceSpans;
  return exported.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ kind, traceId, spanId, parentSpanId, attributes, status, ...named }) => ({
        ...named,
        kind: kind.replace('SPAN_KIND_', ''),
        traceId: hex(traceId),
        spanId: hex(spanId),
        /** Empty without a parent. */
        parentSpanId: hex(parentSpanId),
        attributes: record(attributes),
        isError: status?.code === 'STATUS_CODE_ERROR',
        resource: record(resource.attributes),
      })),
    ),
  );
}

function record(attributes: Attributes): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue } }) => [key, stringValue ?? Number(intValue)]),
  );
}

const hex = (base64: string) => Buffer.from(base64, 'base64').toString('hex');
