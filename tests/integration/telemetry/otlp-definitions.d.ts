/** Declares the OpenTelemetry project's generated definitions as far as trace-receiver.ts uses them; they have no types. */

declare module 'otlp-definitions/build/src/generated/root.js' {
  interface Message {
    decode(bytes: Uint8Array): unknown;
    toObject(message: unknown, options: Readonly<Record<string, unknown>>): unknown;
  }
  type In<Name extends string, Type> = { readonly [name in Name]: Type };
  type InCollector = In<'collector', In<'trace', In<'v1', In<'ExportTraceServiceRequest', Message>>>>;
  const root: In<'opentelemetry', In<'proto', InCollector>>;
  export = root;
}
