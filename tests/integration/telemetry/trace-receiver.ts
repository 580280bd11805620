/** Receives traces as a collector would, and decodes them by the OpenTelemetry project's own definitions. */

import { gunzipSync } from 'node:zlib';
import otlp from 'otlp-definitions/build/src/generated/root.js';

const { ExportTraceServiceRequest } = otlp.opentelemetry.proto.collector.trace.v1;

/** @param respond decides the response to each export */
export function startTraceReceiver(respond: () => Response | Promise<Response> = () => new Response(null)) {
  const received: { path: string; headers: Headers; bytes: Buffer }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const body = await request.bytes();
      const { headers } = request;
      const bytes = Buffer.from(headers.get('content-encoding') === 'gzip' ? gunzipSync(body) : body);
      received.push({ path: new URL(request.url).pathname, headers, bytes });
      return respond();
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    received,
    /** All spans so far, in the order in which they ended. */
    get spans() {
      return received.flatMap(({ bytes }) => spansOf(bytes));
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

function spansOf(bytes: Uint8Array) {
  const options = { longs: String, bytes: String, enums: String, defaults: true, oneofs: false };
  const message = ExportTraceServiceRequest.toObject(ExportTraceServiceRequest.decode(bytes), options);
  return message.resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ name, kind, traceId, spanId, parentSpanId, traceState, attributes, status }) => ({
        name,
        kind: kind.replace('SPAN_KIND_', ''),
        traceId: hex(traceId),
        spanId: hex(spanId),
        /** Empty without a parent. */
        parentSpanId: hex(parentSpanId),
        traceState,
        attributes: record(attributes),
        isError: status?.code === 'STATUS_CODE_ERROR',
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

function hex(base64: string): string {
  return Buffer.from(base64, 'base64').toString('hex');
}
