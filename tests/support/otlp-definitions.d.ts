/** Declares the OpenTelemetry project's generated definitions as far as trace-receiver.ts uses them; they have no types. */

declare module 'otlp-definitions/build/src/generated/root.js' {
  interface AnyValue {
    readonly stringValue?: string;
    readonly intValue?: number;
  }

  interface KeyValue {
    readonly key: string;
    readonly value: AnyValue;
  }

  interface DecodedSpan {
    readonly name: string;
    readonly kind: string;
    /** In base64. */
    readonly traceId: string;
    readonly spanId: string;
    readonly parentSpanId: string;
    readonly traceState: string;
    /** In nanoseconds since the epoch. */
    readonly startTimeUnixNano: string;
    readonly endTimeUnixNano: string;
    readonly attributes: readonly KeyValue[];
    readonly status?: { readonly code?: string };
  }

  export interface TracesData {
    readonly resourceSpans: readonly {
      readonly resource: { readonly attributes: readonly KeyValue[] };
      readonly scopeSpans: readonly { readonly spans: readonly DecodedSpan[] }[];
    }[];
  }

  interface ExportTraceServiceRequest {
    decode(bytes: Uint8Array): unknown;
    toObject(message: unknown, options: Readonly<Record<string, unknown>>): TracesData;
  }

  const root: {
    readonly opentelemetry: {
      readonly proto: {
        readonly collector: {
          readonly trace: {
            readonly v1: { readonly ExportTraceServiceRequest: ExportTraceServiceRequest };
          };
        };
      };
    };
  };
  export = root;
}
