import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { RequestRecord } from '../../../src/gateway/record/request-record.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import type { Traces } from '../../../src/gateway/telemetry/traces.ts';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { type RecordedLog, recordLog } from '../../support/recorded-log.ts';
import { startTraceReceiver, tracesTo } from '../../support/trace-receiver.ts';

/** As many spans are sent together, and as many wait; further ones are dropped. */
const BATCH = 512;
const QUEUE = 2048;
/** `close()` waits for its last spans for a second, and an export may take a minute. */
const CLOSED_MS = 30_000;

describe('a collector', () => {
  let log: RecordedLog;
  let metrics: Metrics;
  let traces: Traces | undefined;
  beforeEach(() => {
    log = recordLog();
    metrics = new Metrics();
  });
  afterEach(() => traces?.close());

  const start = (url: string, exportMs = 60_000) => {
    traces = tracesTo(url, { OTEL_EXPORTER_OTLP_TIMEOUT: String(exportMs) }, { ...log, metrics });
    return traces;
  };
  const send = (to: Traces, spans: number) => {
    for (let sent = 0; sent < spans; sent++) {
      const request = new Request('http://gateway.test');
      const record = new RequestRecord(request);
      to.begin(request.headers, record);
      record.span?.end(record);
    }
  };
  const dropped = async () => (await samplesOf(metrics.registry)).get('dropped_spans_total');
  const messages = () => log.lines.map(({ msg }) => msg);

  it('that stalls delays nothing for long, and the queue is bounded', async () => {
    await using receiver = startTraceReceiver(() => new Promise(() => {}));
    const exporting = start(receiver.url);
    send(exporting, BATCH);
    await eventually(() => receiver.received.length === 1, 'the first export');
    expect(await dropped()).toBe(0);
    send(exporting, QUEUE + 100);
    expect(await dropped()).toBe(100);
    const startedAt = performance.now();
    await exporting.close();
    expect(performance.now() - startedAt).toBeLessThan(CLOSED_MS);
  });

  it('that is away is logged once, with the cause', async () => {
    const exporting = start('http://127.0.0.1:1', 1000);
    for (const failed of [1, 2]) {
      send(exporting, BATCH);
      await eventually(async () => (await dropped()) === failed * BATCH, 'the spans to be lost');
    }
    const cause = 'Error ECONNREFUSED';
    expect(log.lines).toMatchObject([{ level: 'warn', msg: 'traces cannot be exported', cause }]);
  });

  it('that responds with 500 costs its spans, and is logged when it fails and when it works again', async () => {
    let status = 500;
    await using receiver = startTraceReceiver(() => new Response('a text', { status }));
    const exporting = start(receiver.url);
    const exportBatch = async (next: number, lost: number, message: string) => {
      status = next;
      send(exporting, BATCH);
      await eventually(
        async () => messages().at(-1) === message && (await dropped()) === lost * BATCH,
        message,
      );
    };
    const [fails, works] = ['traces cannot be exported', 'traces are exported again'];
    await exportBatch(500, 1, fails);
    await exportBatch(500, 2, fails);
    await exportBatch(200, 2, works);
    await exportBatch(500, 3, fails);
    expect(messages()).toEqual([fails, works, fails]);
    expect(log.lines[0]).toMatchObject({ level: 'warn', cause: 'OTLPExporterError', status: 500 });
    expect(receiver.spans).toHaveLength(4 * BATCH);
  });
});
