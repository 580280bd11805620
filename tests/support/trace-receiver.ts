/** Receives traces as a collector would, and decodes them by the OpenTelemetry project's own definitions. */

import { gunzipSync } from 'node:zlib';
import otlp, { type TracesData } from 'otlp-definitions/build/src/generated/root.js';

const { ExportTraceServiceRequest } = otlp.opentelemetry.proto.collector.trace.v1;

export type ReceivedSpan = ReturnType<typeof spansOf>[number];

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
  const message = ExportTraceServiceRequest.decode(bytes);
  const options = { longs: String, bytes: String, enums: String, defaults: true, oneofs: false };
  const { resourceSpans } = ExportTraceServiceRequest.toObject(message, options);
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        name: span.name,
        kind: span.kind.replace('SPAN_KIND_', ''),
        traceId: hex(span.traceId),
        spanId: hex(span.spanId),
        /** Empty without a parent. */
        parentSpanId: hex(span.parentSpanId),
        traceState: span.traceState,
        /** In milliseconds since the epoch. */
        startedAt: Number(span.startTimeUnixNano) / 1e6,
        endedAt: Number(span.endTimeUnixNano) / 1e6,
        attributes: record(span.attributes),
        isError: span.status?.code === 'STATUS_CODE_ERROR',
        resource: record(resource.attributes),
      })),
    ),
  );
}

type Attributes = TracesData['resourceSpans'][number]['resource']['attributes'];

function record(attributes: Attributes): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue } }) => [key, stringValue ?? Number(intValue)]),
  );
}

function hex(base64: string): string {
  return Buffer.from(base64, 'base64').toString('hex');
}
