/** Reads which traces are exported. The exporter reads the other variables of OpenTelemetry by itself. */

import type { EnvironmentReader } from './environment-reader.ts';
import { baseAddressProblem, shareProblem } from './values.ts';

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** @see https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ */
export interface TraceSettings {
  readonly sampler: (typeof SAMPLERS)[number];
  /** Which share of the traces a sampler by ratio takes, from 0 to 1. */
  readonly share: number;
}

/** Undefined when there is no address to which traces could be exported. */
export function readTraceSettings(read: EnvironmentReader): TraceSettings | undefined {
  const addresses = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'].map((name) =>
    read.optional(name, baseAddressProblem),
  );
  const sampler = read.oneOf('OTEL_TRACES_SAMPLER', SAMPLERS, 'parentbased_always_on');
  const share = Number(read.optional('OTEL_TRACES_SAMPLER_ARG', shareProblem) ?? 1);
  return addresses.some(Boolean) ? { sampler, share } : undefined;
}
