import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { type CallRecord, RequestRecord } from '../../../src/gateway/record/request-record.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { Traces } from '../../../src/gateway/telemetry/traces.ts';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { type RecordedLog, recordLog } from '../../support/recorded-log.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { ORIGIN, SIGNED_IN, testSettings } from '../../support/world.ts';
import { startTraceReceiver } from './trace-receiver.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';
const SAMPLED = `00-${TRACE_ID}-${CALLER}-01`;
const UNSAMPLED = `00-${TRACE_ID}-${CALLER}-00`;
const METHOD = 'http.request.method';
const ROUTE = 'http.route';
const STATUS = 'http.response.status_code';
const OWN = 'music_gateway';
const tracestate = 'vendor=opaque,other=1';

let log: RecordedLog;
let metrics: Metrics;
let receiver: ReturnType<typeof startTraceReceiver>;
beforeEach(() => {
  log = recordLog();
  metrics = new Metrics();
  receiver = startTraceReceiver();
});
afterEach(() => receiver[Symbol.asyncDispose]());

/** By these variables of OpenTelemetry, which are read when the exporter is made. */
function startTraces(variables: Record<string, string> = {}, share = 1): Traces {
  const all = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...variables };
  Object.assign(process.env, all);
  const traces = new Traces(share, 'music-gateway', log.logger, metrics);
  for (const name of Object.keys(all)) delete process.env[name];
  return traces;
}

type Call = { readonly url: string; readonly outcome: CallRecord['outcome'] };

/** Records the spans of a request and its call, and returns them as they are exported. */
async function traced(facts: Partial<RequestRecord>, call?: Call, headers = {}, share = 1) {
  const traces = startTraces({}, share);
  const record = new RequestRecord(new Request('http://gateway.test/a-path', { headers }));
  Object.assign(record, { route: '/all/*', status: 200, ...facts });
  traces.begin(new Headers(headers), record);
  if (call) record.span?.beginCall({ name: 'proxy', method: 'PUT', url: call.url }).end(call.outcome);
  record.span?.end(record);
  await traces.close();
  // It waits for a second at most, in which a busy machine may not have sent them.
  const exported = record.headers.traceparent.endsWith('-01') ? 1 + Number(call !== undefined) : 0;
  await eventually(() => receiver.spans.length >= exported, `${exported} spans`);
  const [server, client] = receiver.spans.toReversed();
  return { server, client, own: record.headers.traceparent };
}

describe('the span of a request', () => {
  it.each<[Partial<RequestRecord>, own: Record<string, unknown>, name?: string]>([
    [{ status: 404, slices: 3 }, { [`${OWN}.slices`]: 3 }],
    [
      { status: 502, reason: 'upstreamUnreachable', cause: 'secret' },
      { 'error.type': '502', [`${OWN}.reason`]: 'upstreamUnreachable' },
    ],
    [{ brokenBody: true }, { 'error.type': 'http_response_incomplete' }],
    [
      { clientGone: 'waiting', status: 502 },
      { [STATUS]: undefined, [`${OWN}.client_gone`]: 'waiting' },
    ],
    [{ route: 'unmatched' }, { [ROUTE]: undefined }, 'GET'],
    [{ method: 'other' }, { [METHOD]: '_OTHER' }, 'HTTP /all/*'],
  ])('with %j has these attributes beside the usual: %j', async (facts, own, name = 'GET /all/*') => {
    const { server } = await traced(facts);
    expect(server).toMatchObject({ name, kind: 'SERVER', isError: 'error.type' in own, parentSpanId: '' });
    const usual = { [METHOD]: 'GET', [ROUTE]: '/all/*', [STATUS]: facts.status ?? 200 };
    expect(server?.attributes).toEqual({ ...usual, ...own });
  });

  it.each<[string, CallRecord['outcome'], string, number, Record<string, unknown>]>([
    ['http://127.0.0.1:81/base?code=secret', 200, '127.0.0.1', 81, { [STATUS]: 200 }],
    ['http://[::1]/a', 401, '::1', 80, { [STATUS]: 401, 'error.type': '401' }],
    ['https://[::1]', 'connection_refused', '::1', 443, { 'error.type': 'connection_refused' }],
  ])('has a call to %s with the outcome %s and its attributes', async (url, outcome, address, port, end) => {
    const { client } = await traced({}, { url, outcome });
    expect(client).toMatchObject({ name: 'PUT', kind: 'CLIENT', isError: outcome !== 200 });
    const begin = { [METHOD]: 'PUT', 'server.address': address, 'server.port': port };
    expect(client?.attributes).toEqual({ ...begin, [`${OWN}.call`]: 'proxy', ...end });
  });

  it.each([
    ['00-no-no-01', 1, true],
    [UNSAMPLED, 1, false],
    [SAMPLED, 0, true],
    ['', 0, false],
  ])('with the traceparent %j and the share %d is exported: %p', async (traceparent, share, isSampled) => {
    const headers = { traceparent, tracestate };
    const { server, own } = await traced({}, undefined, headers, share);
    expect(server !== undefined).toBe(isSampled);
    expect(own).toMatch(isSampled ? /-01$/ : /^00-[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/);
    if (traceparent !== SAMPLED) return;
    expect(server).toMatchObject({ traceId: TRACE_ID, parentSpanId: CALLER, traceState: tracestate });
    expect(own).toBe(`00-${TRACE_ID}-${server?.spanId}-01`);
  });
});

it('the calls of a request that needed a refresh are its children, exported as the variables of OpenTelemetry say', async () => {
  await using upstream = new ScriptedUpstream();
  upstream.on('GET /v1/me', ({ headers }) => {
    return new Response('{}', { status: headers.get('authorization') === 'Bearer b' ? 200 : 401 });
  });
  upstream.on('POST /v1/auth/refresh', () => Response.json({ access_token: 'b', refresh_token: 'c' }));
  const traces = startTraces({
    OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/own/path`,
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20key',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_RESOURCE_ATTRIBUTES: 'service.name=studio-gateway,service.instance.id=a',
  });
  const settings = testSettings({ UPSTREAM_URL: upstream.upstreamUrl });
  const gateway = createGateway({ ...log, traces, settings });
  const headers = { origin: ORIGIN, cookie: SIGNED_IN };
  await gateway.handle(new Request('http://gateway.test/api/auth/session', { headers }));
  await traces.close();
  await eventually(() => receiver.spans.length >= 4, 'four spans');
  const { spans } = receiver;
  const server = spans.pop();
  expect(server?.attributes).toMatchObject({ [`${OWN}.refresh`]: 'renewed' });
  const calls = spans.map(({ attributes }) => `${attributes[`${OWN}.call`]} ${attributes[STATUS]}`);
  expect(calls).toEqual(['me 401', 'refresh 200', 'me 200']);
  for (const { parentSpanId } of spans) expect(parentSpanId).toBe(server?.spanId ?? '');
  const parents = upstream.received.map(({ headers }) => headers.get('traceparent'));
  expect(parents).toEqual(spans.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`));
  const logged = [{ outcome: 401 }, { call: 'refresh', outcome: 200 }, { outcome: 200 }];
  expect(log.lines).toMatchObject([{ traceId: server?.traceId, refresh: 'renewed', upstream: logged }]);
  const resource = { 'service.name': 'studio-gateway', 'service.instance.id': 'a' };
  expect(server?.resource).toMatchObject({ ...resource, 'service.version': expect.any(String) });
  const [exported = expect.unreachable()] = receiver.received;
  expect(exported.path).toBe('/own/path/v1/traces');
  expect(exported.headers.toJSON()).toMatchObject({ 'api-key': 'a key', 'content-encoding': 'gzip' });
});

describe('a collector', () => {
  /** As many spans are sent together, and as many wait; further ones are dropped. */
  const [BATCH, QUEUE] = [512, 2048];
  const send = (traces: Traces, spans: number) => {
    for (let sent = 0; sent < spans; sent++) {
      const record = new RequestRecord(new Request('http://gateway.test'));
      traces.begin(new Headers(), record);
      record.span?.end(record);
    }
  };
  const dropped = async () => (await samplesOf(metrics.registry)).get('dropped_spans_total');

  it('that stalls delays nothing for long, and the queue is bounded', async () => {
    await using stalled = startTraceReceiver(() => new Promise(() => {}));
    const OTEL_EXPORTER_OTLP_TIMEOUT = '60000';
    const traces = startTraces({ OTEL_EXPORTER_OTLP_ENDPOINT: stalled.url, OTEL_EXPORTER_OTLP_TIMEOUT });
    send(traces, BATCH);
    await eventually(() => stalled.received.length === 1, 'the first export');
    expect(await dropped()).toBe(0);
    send(traces, QUEUE + 100);
    expect(await dropped()).toBe(100);
    const timeout = Bun.sleep(30_000).then(() => 'waits for the collector');
    expect(await Promise.race([traces.close(), timeout])).toBeUndefined();
  });

  it('that responds with 500 costs its spans, and is logged when it fails and when it works again', async () => {
    let status = 500;
    await using broken = startTraceReceiver(() => new Response('a text', { status }));
    const traces = startTraces({ OTEL_EXPORTER_OTLP_ENDPOINT: broken.url });
    const exportBatch = async (lost: number, message: string) => {
      send(traces, BATCH);
      const isDone = async () => log.lines.at(-1)?.['msg'] === message && (await dropped()) === lost * BATCH;
      await eventually(isDone, message);
    };
    const [fails, works] = ['traces cannot be exported', 'traces are exported again'];
    for (const lost of [1, 2]) await exportBatch(lost, fails);
    status = 200;
    await exportBatch(2, works);
    status = 500;
    await exportBatch(3, fails);
    expect(log.lines.map(({ msg }) => msg)).toEqual([fails, works, fails]);
    expect(log.lines[0]).toMatchObject({ level: 'warn', cause: 'OTLPExporterError', status: 500 });
    await traces.close();
  });
});
