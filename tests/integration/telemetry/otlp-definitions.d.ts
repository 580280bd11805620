/** Declares the OpenTelemetry project's generated definitions as far as trace-receiver.ts uses them; they have no types. */

declare module 'otlp-definitions/build/src/generated/root.js' {
  type In<Name extends string, Type> = { readonly [name in Name]: Type };
  type Attributes = readonly { key: string; value: { stringValue?: string; intValue?: string } }[];
  type Texts = In<'name' | 'kind' | 'traceId' | 'spanId' | 'parentSpanId' | 'traceState', string>;
  type Span = Texts & { readonly attributes: Attributes; readonly status: { code: string } | null };
  interface Exported {
    readonly resource: { readonly attributes: Attributes };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }
  interface Message {
    decode(bytes: Uint8Array): unknown;
    /** With texts for numbers, bytes and enums, and with the default of each field that is not set. */
    toObject(message: unknown, options: object): { readonly resourceSpans: readonly Exported[] };
  }
  type InCollector = In<'collector', In<'trace', In<'v1', In<'ExportTraceServiceRequest', Message>>>>;
  const root: In<'opentelemetry', In<'proto', InCollector>>;
  export = root;
}
