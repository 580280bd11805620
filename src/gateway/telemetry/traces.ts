/** Exports the spans of requests and their calls by OpenTelemetry. */

import { createNoopMeter, type Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import {
  ATTR_ERROR_TYPE,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
} from '@opentelemetry/semantic-conventions';
import type { Logger } from 'pino';
import packageJson from '../../../package.json' with { type: 'json' };
import { describeCause } from '../http/error-summary.ts';
import type { RequestRecord } from '../record/request-record.ts';
import { receivedContext } from '../record/trace-context.ts';
import type { Metrics } from './metrics.ts';
import { beginSpan } from './request-span.ts';

const { name: SCOPE, version } = packageJson;

/** How long a process that stops waits for its last spans to be received. */
const FLUSH_MS = 1000;

/**
 * Spans wait in a queue of 2048, and leave in batches of at most 512, every 5 s or when a batch is full. Spans that find
 * the queue full are dropped. These are the defaults of the package.
 */
export class Traces {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;

  /**
   * @param share of the traces that is exported, where the client has not decided that by its `traceparent`
   * @param metrics counts the spans that are lost: the queue was full, or they could not be exported
   */
  constructor(share: number, serviceName: string, logger: Logger, metrics: Metrics | undefined) {
    const exporter = new ReportingExporter(logger);
    const selfObsMeterProvider = dropMeter(metrics?.droppedSpans());
    const own = resourceFromAttributes({
      [ATTR_SERVICE_NAME]: serviceName,
      [ATTR_SERVICE_VERSION]: version,
    });
    const given = detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] });
    this.#provider = new TracerProvider({
      resource: defaultResource().merge(own).merge(given),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
      spanProcessors: [new BatchSpanProcessor({ exporter, selfObsMeterProvider })],
    });
    this.#tracer = this.#provider.getTracer(SCOPE, version);
  }

  /** Begins the span of a request, and makes it the parent of the request's trace context. */
  begin(headers: Headers, record: RequestRecord): void {
    const span = beginSpan(this.#tracer, receivedContext(headers), record);
    record.span = span;
    record.headers = { ...record.headers, traceparent: span.traceparent };
  }

  /** Exports what is still in the queue, if that is possible in a short time. */
  async close(): Promise<void> {
    const flushed = this.#provider.shutdown().catch(() => {});
    await Promise.race([flushed, Bun.sleep(FLUSH_MS)]);
  }
}

/** Logs when exporting fails, and when it works again. */
class ReportingExporter extends OTLPTraceExporter {
  readonly #logger: Logger;
  #isDown = false;

  constructor(logger: Logger) {
    super();
    this.#logger = logger;
  }

  override export(...[spans, done]: Parameters<SpanExporter['export']>): void {
    super.export(spans, (result) => {
      this.#report(result.error);
      done(result);
    });
  }

  #report(error: Error | undefined): void {
    if (error && !this.#isDown) {
      // The error itself quotes the response, and perhaps an address.
      const status = 'code' in error && typeof error.code === 'number' ? error.code : undefined;
      this.#logger.warn({ cause: describeCause(error), status }, 'traces cannot be exported');
    }
    if (!error && this.#isDown) this.#logger.info('traces are exported again');
    this.#isDown = error !== undefined;
  }
}

/** The processor counts every span that it has processed; a lost one has an error type. */
function dropMeter(onDropped: (count: number) => void = () => {}) {
  const meter = createNoopMeter();
  meter.createCounter = () => ({
    add: (count, attributes) => {
      if (attributes?.[ATTR_ERROR_TYPE]) onDropped(count);
    },
  });
  return { getMeter: () => meter };
}
