import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { type CallRecord, RequestRecord } from '../../../src/gateway/record/request-record.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import type { Traces } from '../../../src/gateway/telemetry/traces.ts';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { type RecordedLog, recordLog } from '../../support/recorded-log.ts';
import { startTraceReceiver, tracesTo } from './trace-receiver.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';
const SAMPLED = `00-${TRACE_ID}-${CALLER}-01`;
const UNSAMPLED = `00-${TRACE_ID}-${CALLER}-00`;

let log: RecordedLog;
let receiver: ReturnType<typeof startTraceReceiver>;
beforeEach(() => {
  log = recordLog();
  receiver = startTraceReceiver();
});
afterEach(() => receiver[Symbol.asyncDispose]());

interface Given {
  readonly facts?: Partial<RequestRecord>;
  readonly headers?: Record<string, string>;
  readonly call?: { url: string; outcome: CallRecord['outcome'] };
  readonly share?: number;
  readonly variables?: Record<string, string>;
}

/** Records the spans of a request and its call, and returns them as they are exported. */
async function traced({ facts = {}, headers = {}, call, share = 1, variables = {} }: Given) {
  const traces = tracesTo(receiver.url, variables, { ...log, share });
  const request = new Request('http://gateway.test/a-path', { headers });
  const record = new RequestRecord(request);
  Object.assign(record, { route: '/api/upstream/*', status: 200, ...facts });
  traces.begin(request.headers, record);
  const span = call && record.span?.beginCall({ name: 'proxy', method: 'PUT', url: call.url });
  if (call) span?.end(call.outcome);
  record.span?.end(record);
  await traces.close();
  const [first, second] = receiver.spans;
  const [server, client] = call ? [second, first] : [first];
  return { server, client, passedOn: span?.headers.traceparent, own: record.headers.traceparent };
}

describe('the span of a request', () => {
  const ATTRIBUTES = { 'http.request.method': 'GET', 'http.route': '/api/upstream/*' };
  const STATUS = 'http.response.status_code';

  it.each<[Partial<RequestRecord>, Record<string, unknown>, isError: boolean, name?: string]>([
    [{}, { ...ATTRIBUTES, [STATUS]: 200 }, false],
    [{ status: 404 }, { ...ATTRIBUTES, [STATUS]: 404 }, false],
    [
      { status: 502, reason: 'upstreamUnreachable', cause: 'secret' },
      { ...ATTRIBUTES, [STATUS]: 502, 'error.type': '502', 'music_gateway.reason': 'upstreamUnreachable' },
      true,
    ],
    [{ refresh: 'renewed' }, { ...ATTRIBUTES, [STATUS]: 200, 'music_gateway.refresh': 'renewed' }, false],
    [{ slices: 3 }, { ...ATTRIBUTES, [STATUS]: 200, 'music_gateway.slices': 3 }, false],
    [{ brokenBody: true }, { ...ATTRIBUTES, [STATUS]: 200, 'error.type': 'http_response_incomplete' }, true],
    [
      { clientGone: 'waiting', status: 502 },
      { ...ATTRIBUTES, 'music_gateway.client_gone': 'waiting' },
      false,
    ],
    [{ route: 'unmatched' }, { 'http.request.method': 'GET', [STATUS]: 200 }, false, 'GET'],
    [
      { method: 'other' },
      { ...ATTRIBUTES, 'http.request.method': '_OTHER', [STATUS]: 200 },
      false,
      'HTTP /api/upstream/*',
    ],
  ])(
    'with %j has these attributes alone: %j',
    async (facts, attributes, isError, name = 'GET /api/upstream/*') => {
      const { server } = await traced({ facts });
      expect(server).toMatchObject({ name, kind: 'SERVER', isError, parentSpanId: '' });
      expect(server?.attributes).toEqual(attributes);
    },
  );

  it.each<[string, CallRecord['outcome'], string, number]>([
    ['http://127.0.0.1:81/base?code=secret', 200, '127.0.0.1', 81],
    ['http://[::1]/a', 401, '::1', 80],
    ['https://[::1]', 'connection_refused', '::1', 443],
  ])('is the parent of its call to %s with the outcome %s', async (url, outcome, address, port) => {
    const { server, client, passedOn } = await traced({ call: { url, outcome } });
    const isError = outcome !== 200;
    expect(client).toMatchObject({
      name: 'PUT',
      kind: 'CLIENT',
      isError,
      parentSpanId: server?.spanId ?? '',
    });
    expect(client?.attributes).toEqual({
      'http.request.method': 'PUT',
      'server.address': address,
      'server.port': port,
      'music_gateway.call': 'proxy',
      ...(typeof outcome === 'number' && { [STATUS]: outcome }),
      ...(isError && { 'error.type': String(outcome) }),
    });
    expect(passedOn).toBe(`00-${server?.traceId}-${client?.spanId}-01`);
  });

  const tracestate = 'vendor=opaque,other=1';
  it('continues the trace of the caller', async () => {
    const { server, own } = await traced({ headers: { traceparent: SAMPLED, tracestate } });
    expect(server).toMatchObject({ traceId: TRACE_ID, parentSpanId: CALLER, traceState: tracestate });
    expect(own).toBe(`00-${TRACE_ID}-${server?.spanId}-01`);
  });

  it.each([
    ['', 1, true],
    ['00-no-no-01', 1, true],
    [UNSAMPLED, 1, false],
    [SAMPLED, 0, true],
    ['', 0, false],
  ])('with the traceparent %j and the share %d is exported: %p', async (traceparent, share, isSampled) => {
    const { server, own } = await traced({ headers: { traceparent, tracestate }, share });
    expect(server !== undefined).toBe(isSampled);
    expect(own).toMatch(isSampled ? /-01$/ : /^00-[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/);
  });

  it('is exported as the variables of OpenTelemetry say', async () => {
    const { server } = await traced({
      variables: {
        OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/own/path`,
        OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20key',
        OTEL_SERVICE_NAME: 'studio-gateway',
        OTEL_RESOURCE_ATTRIBUTES: 'service.name=unused,service.instance.id=a',
      },
    });
    const resource = { 'service.name': 'studio-gateway', 'service.instance.id': 'a' };
    expect(server?.resource).toMatchObject({ ...resource, 'service.version': expect.any(String) });
    const [{ path, headers } = expect.unreachable()] = receiver.received;
    expect([path, headers.get('api-key')]).toEqual(['/own/path/v1/traces', 'a key']);
  });
});

describe('a collector', () => {
  /** As many spans are sent together, and as many wait; further ones are dropped. */
  const [BATCH, QUEUE] = [512, 2048];
  let metrics: Metrics;
  let traces: Traces;
  const start = (url: string, variables = {}) => {
    metrics = new Metrics();
    traces = tracesTo(url, variables, { ...log, metrics });
  };
  const send = (spans: number) => {
    for (let sent = 0; sent < spans; sent++) {
      const record = new RequestRecord(new Request('http://gateway.test'));
      traces.begin(new Headers(), record);
      record.span?.end(record);
    }
  };
  const dropped = async () => (await samplesOf(metrics.registry)).get('dropped_spans_total');
  const [fails, works] = ['traces cannot be exported', 'traces are exported again'];
  const messages = () => log.lines.map(({ msg }) => msg);
  const exportBatch = async (lost: number, message: string) => {
    send(BATCH);
    await eventually(
      async () => messages().at(-1) === message && (await dropped()) === lost * BATCH,
      message,
    );
  };

  it('that stalls delays nothing for long, and the queue is bounded', async () => {
    await using stalled = startTraceReceiver(() => new Promise(() => {}));
    start(stalled.url, { OTEL_EXPORTER_OTLP_TIMEOUT: '60000' });
    send(BATCH);
    await eventually(() => stalled.received.length === 1, 'the first export');
    expect(await dropped()).toBe(0);
    send(QUEUE + 100);
    expect(await dropped()).toBe(100);
    const startedAt = performance.now();
    await traces.close();
    expect(performance.now() - startedAt).toBeLessThan(30_000);
  });

  it('that is away is logged once, with the cause', async () => {
    start('http://127.0.0.1:1', { OTEL_EXPORTER_OTLP_TIMEOUT: '1000' });
    for (const lost of [1, 2]) await exportBatch(lost, fails);
    expect(log.lines).toMatchObject([{ level: 'warn', msg: fails, cause: 'Error ECONNREFUSED' }]);
    await traces.close();
  });

  it('that responds with 500 costs its spans, and is logged when it fails and when it works again', async () => {
    let status = 500;
    await using broken = startTraceReceiver(() => new Response('a text', { status }));
    start(broken.url);
    for (const lost of [1, 2]) await exportBatch(lost, fails);
    status = 200;
    await exportBatch(2, works);
    status = 500;
    await exportBatch(3, fails);
    expect(messages()).toEqual([fails, works, fails]);
    expect(log.lines[0]).toMatchObject({ level: 'warn', cause: 'OTLPExporterError', status: 500 });
    expect(broken.spans).toHaveLength(4 * BATCH);
    await traces.close();
  });
});
