/** Receives traces as a collector would, and decodes them by the OpenTelemetry project's own definitions. */

import { gunzipSync } from 'node:zlib';
import otlp from 'otlp-definitions/build/src/generated/root.js';

const { ExportTraceServiceRequest } = otlp.opentelemetry.proto.collector.trace.v1;
const AS_TEXT = { longs: String, bytes: String, enums: String, defaults: true, oneofs: false };

/** @param respond decides the response to each export */
export function startTraceReceiver(respond: () => Response | Promise<Response> = () => new Response(null)) {
  const received: { path: string; headers: Headers; bytes: Buffer }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { url, headers } = request;
      const body = await request.bytes();
      const bytes = Buffer.from(headers.get('content-encoding') === 'gzip' ? gunzipSync(body) : body);
      received.push({ path: new URL(url).pathname, headers, bytes });
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
  return message.resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        name: span.name,
        kind: span.kind.replace('SPAN_KIND_', ''),
        traceState: span.traceState,
        traceId: hex(span.traceId),
        spanId: hex(span.spanId),
        /** Empty without a parent. */
        parentSpanId: hex(span.parentSpanId),
        attributes: record(span.attributes),
        isError: span.status?.code === 'STATUS_CODE_ERROR',
        resource: record(resource.attributes),
      })),
    ),
  );
}

type Attributes = readonly { key: string; value: { stringValue?: string; intValue?: string } }[];

function record(attributes: Attributes): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue } }) => [key, stringValue ?? Number(intValue)]),
  );
}

const hex = (base64: string) => Buffer.from(base64, 'base64').toString('hex');
