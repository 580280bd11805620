import { describe, expect, it } from 'bun:test';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { parseSamples } from '../../support/metrics.ts';
import { startTraceReceiver } from '../../support/trace-receiver.ts';

const NO_SERVER = 'http://127.0.0.1:1';
/** As many spans are sent together, and as many wait; further ones are dropped. */
const BATCH = 512;
const QUEUE = 2048;
/** The process waits for its last spans for a second. */
const STOPPED_MS = 5000;
const LONG_MS = 60_000;
const SHORT_MS = 500;

/** Starts a gateway that exports its spans to this address, and gives up an export after that time. */
async function startTraced(collector: string, exportMs: number) {
  const metricsPort = await freePorts(1);
  const settings = {
    UPSTREAM_URL: NO_SERVER,
    METRICS_PORT: String(metricsPort),
    OTEL_EXPORTER_OTLP_ENDPOINT: collector,
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=s3cr3t',
    OTEL_EXPORTER_OTLP_TIMEOUT: String(exportMs),
  };
  const gateway = await startGatewayProcess(settings);
  const dropped = async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return parseSamples(metrics).get('dropped_spans_total');
  };
  return { gateway, dropped };
}

/** Each request is one span. */
async function send({ url }: GatewayProcess, requests: number): Promise<void> {
  let left = requests;
  const lane = async () => {
    while (left-- > 0) expect((await fetch(`${url}/api/health`)).status).toBe(200);
  };
  await Promise.all(Array.from({ length: 10 }, lane));
}

async function stopsInTime(gateway: GatewayProcess): Promise<void> {
  const stoppedAt = performance.now();
  gateway.kill('SIGTERM');
  expect(await gateway.exited).toBe(0);
  expect(performance.now() - stoppedAt).toBeLessThan(STOPPED_MS);
  await gateway[Symbol.asyncDispose]();
  expect(gateway.stderr()).toBe('');
}

describe('a collector', () => {
  it('that stalls delays neither requests nor the end of the process, and the queue is bounded', async () => {
    await using receiver = startTraceReceiver(() => new Promise(() => {}));
    const { gateway, dropped } = await startTraced(receiver.url, LONG_MS);
    await using _ = gateway;
    await send(gateway, BATCH);
    await eventually(() => receiver.received.length === 1, 'the first export');
    expect(await dropped()).toBe(0);
    await send(gateway, QUEUE + 100);
    // The first export is smaller than a batch when the machine was slow.
    expect(await dropped()).toBe(BATCH + 100 - receiver.spans.length);
    await stopsInTime(gateway);
  });

  it('that is away is logged once, and the process ends in time', async () => {
    const { gateway } = await startTraced(NO_SERVER, SHORT_MS);
    await using _ = gateway;
    await send(gateway, BATCH);
    await eventually(() => gateway.said('traces cannot be exported'), 'the warning');
    expect(gateway.errors()).toContain('"cause":"Error ECONNREFUSED"');
    await send(gateway, BATCH);
    await stopsInTime(gateway);
    expect(gateway.said('traces cannot be exported')).toBe(1);
  });

  it('that responds with 500 costs its spans, and is logged when it fails and when it works again', async () => {
    let isBroken = true;
    await using receiver = startTraceReceiver(() => new Response('s3cr3t', { status: isBroken ? 500 : 200 }));
    const { gateway, dropped } = await startTraced(receiver.url, LONG_MS);
    await using _ = gateway;
    for (const exported of [1, 2]) {
      await send(gateway, BATCH);
      await eventually(async () => (await dropped()) === exported * BATCH, 'the spans to be lost');
    }
    expect(gateway.said('traces cannot be exported')).toBe(1);
    expect(gateway.errors()).toContain('"cause":"OTLPExporterError","status":500');
    isBroken = false;
    await send(gateway, BATCH);
    await eventually(() => gateway.said('traces are exported again'), 'the log line');
    expect(await dropped()).toBe(2 * BATCH);
    isBroken = true;
    await send(gateway, BATCH);
    await eventually(() => gateway.said('traces cannot be exported') === 2, 'the second warning');
    expect(gateway.errors()).not.toContain('s3cr3t');
    await stopsInTime(gateway);
    expect(receiver.spans).toHaveLength(4 * BATCH);
  });
});
