import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { type CallRecord, RequestRecord } from '../../../src/gateway/record/request-record.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { Traces } from '../../../src/gateway/telemetry/traces.ts';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { type RecordedLog, recordLog } from '../../support/recorded-log.ts';
import { GENERATE, PROXIED_PATH } from '../../support/routes.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { ACCESS_ONLY, request, SIGNED_IN, testSettings } from '../../support/world.ts';
import { startTraceReceiver } from './trace-receiver.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';
const SAMPLED = `00-${TRACE_ID}-${CALLER}-01`;
const UNSAMPLED = `00-${TRACE_ID}-${CALLER}-00`;
const STATUS = 'http.response.status_code';
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

interface Given {
  readonly facts?: Partial<RequestRecord>;
  readonly headers?: Record<string, string>;
  readonly call?: { url: string; outcome: CallRecord['outcome'] };
  readonly traces?: Traces;
}

/** Records the spans of a request and its call, and returns them as they are exported. */
async function traced({ facts = {}, headers = {}, call, traces = startTraces() }: Given) {
  const record = new RequestRecord(new Request('http://gateway.test/a-path', { headers }));
  Object.assign(record, { route: '/api/upstream/*', status: 200, ...facts });
  traces.begin(new Headers(headers), record);
  const span = call && record.span?.beginCall({ name: 'proxy', method: 'PUT', url: call.url });
  if (call) span?.end(call.outcome);
  record.span?.end(record);
  await traces.close();
  const [server, client] = receiver.spans.toReversed();
  return { server, client, passedOn: span?.headers.traceparent, own: record.headers.traceparent };
}

describe('the span of a request', () => {
  it.each<[Partial<RequestRecord>, Record<string, unknown>, name?: string]>([
    [{}, {}],
    [
      { status: 404, refresh: 'renewed', slices: 3 },
      { 'music_gateway.refresh': 'renewed', 'music_gateway.slices': 3 },
    ],
    [
      { status: 502, reason: 'upstreamUnreachable', cause: 'secret' },
      { 'error.type': '502', 'music_gateway.reason': 'upstreamUnreachable' },
    ],
    [{ brokenBody: true }, { 'error.type': 'http_response_incomplete' }],
    [
      { clientGone: 'waiting', status: 502 },
      { [STATUS]: undefined, 'music_gateway.client_gone': 'waiting' },
    ],
    [{ route: 'unmatched' }, { 'http.route': undefined }, 'GET'],
    [{ method: 'other' }, { 'http.request.method': '_OTHER' }, 'HTTP /api/upstream/*'],
  ])(
    'with %j has these attributes beside method, route and status, and no others: %j',
    async (facts, own, name = 'GET /api/upstream/*') => {
      const { server } = await traced({ facts });
      const isError = 'error.type' in own;
      expect(server).toMatchObject({ name, kind: 'SERVER', isError, parentSpanId: '' });
      const usual = {
        'http.request.method': 'GET',
        'http.route': '/api/upstream/*',
        [STATUS]: facts.status ?? 200,
      };
      expect(server?.attributes).toEqual({ ...usual, ...own });
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
    const headers = { traceparent, tracestate };
    const { server, own } = await traced({ headers, traces: startTraces({}, share) });
    expect(server !== undefined).toBe(isSampled);
    expect(own).toMatch(isSampled ? /-01$/ : /^00-[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/);
  });

  it('is exported as the variables of OpenTelemetry say', async () => {
    const traces = startTraces({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/own/path`,
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20key',
      OTEL_SERVICE_NAME: 'studio-gateway',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=unused,service.instance.id=a',
    });
    const { server } = await traced({ traces });
    const resource = { 'service.name': 'studio-gateway', 'service.instance.id': 'a' };
    expect(server?.resource).toMatchObject({ ...resource, 'service.version': expect.any(String) });
    const [{ path, headers } = expect.unreachable()] = receiver.received;
    expect([path, headers.get('api-key')]).toEqual(['/own/path/v1/traces', 'a key']);
  });
});

describe('the spans of a gateway', () => {
  let upstream: ScriptedUpstream;
  beforeEach(() => {
    upstream = new ScriptedUpstream();
  });
  afterEach(() => upstream.stop());

  /** Sends requests to a gateway in front of the upstream, and returns the spans in the order in which they ended. */
  async function sent(send: (url: string) => Promise<unknown>) {
    const traces = startTraces();
    const addresses = { UPSTREAM_URL: upstream.upstreamUrl, IDP_URL: upstream.identityProviderUrl };
    const settings = testSettings({ ...addresses, RELAY_SLICE_BYTES: '400' });
    const gateway = createGateway({ ...log, traces, settings });
    gateway.listen({ port: 0, hostname: '127.0.0.1' });
    await send(`http://127.0.0.1:${gateway.server?.port}`);
    await gateway.stop();
    await traces.close();
    return receiver.spans;
  }

  it('are of the request and its three calls when it needed a refresh, and the upstream learns these parents', async () => {
    upstream.on('GET /v1/me', ({ headers }) => {
      return new Response('{}', { status: headers.get('authorization') === 'Bearer b' ? 200 : 401 });
    });
    upstream.on('POST /v1/auth/refresh', () => Response.json({ access_token: 'b', refresh_token: 'c' }));
    const spans = await sent((url) => request(`${url}/api/auth/session`, { cookie: SIGNED_IN }));
    const server = spans.pop();
    expect(server?.attributes).toMatchObject({ 'music_gateway.refresh': 'renewed' });
    const calls = [
      ['me', 401],
      ['refresh', 200],
      ['me', 200],
    ] as const;
    expect(spans).toMatchObject(
      calls.map(([call, status]) => ({
        parentSpanId: server?.spanId ?? '',
        attributes: { 'music_gateway.call': call, [STATUS]: status },
      })),
    );
    const parents = upstream.received.map(({ headers }) => headers.get('traceparent'));
    expect(parents).toEqual(spans.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`));
    const logged = calls.map(([call, outcome]) => ({ call, outcome }));
    expect(log.lines).toMatchObject([{ traceId: server?.traceId, refresh: 'renewed', upstream: logged }]);
  });

  it('end with the first byte of a generation, and with its last', async () => {
    const readOn = Promise.withResolvers<void>();
    upstream.on('GET /v1/library', () => new Response('between them'));
    upstream.on('POST /v1/music', () => {
      const track = async function* () {
        yield Buffer.alloc(100_000);
        await readOn.promise;
      };
      return new Response(track());
    });
    const spans = await sent(async (url) => {
      const response = await request(url + GENERATE.path, GENERATE.options);
      await (await request(url + PROXIED_PATH, { cookie: ACCESS_ONLY })).text();
      await log.line({ route: '/api/upstream/*' });
      readOn.resolve();
      await response.arrayBuffer();
    });
    const calls = spans.map(({ attributes }) => attributes['music_gateway.call'] ?? attributes['http.route']);
    expect(calls).toEqual(['music', 'proxy', '/api/upstream/*', GENERATE.path]);
  });

  it('are of the request and its first call for a sliced track', async () => {
    upstream.on('GET /v1/library', ({ headers }) => {
      const [, first = '', last] = /^bytes=(\d+)-(\d*)$/.exec(headers.get('range') ?? '') ?? [];
      const end = Math.min(Number(last) + 1, 1000);
      const named = { etag: '"a"', 'content-range': `bytes ${first}-${end - 1}/1000` };
      return new Response(Buffer.alloc(end - Number(first)), { status: 206, headers: named });
    });
    const options = { cookie: ACCESS_ONLY, headers: { range: 'bytes=0-' } };
    const spans = await sent(async (url) => (await request(url + PROXIED_PATH, options)).arrayBuffer());
    expect(spans).toMatchObject([{ kind: 'CLIENT' }, { attributes: { 'music_gateway.slices': 3 } }]);
  });
});

describe('a collector', () => {
  /** As many spans are sent together, and as many wait; further ones are dropped. */
  const [BATCH, QUEUE] = [512, 2048];
  const [fails, works] = ['traces cannot be exported', 'traces are exported again'];
  let traces: Traces;
  const send = (spans: number) => {
    for (let sent = 0; sent < spans; sent++) {
      const record = new RequestRecord(new Request('http://gateway.test'));
      traces.begin(new Headers(), record);
      record.span?.end(record);
    }
  };
  const dropped = async () => (await samplesOf(metrics.registry)).get('dropped_spans_total');
  const messages = () => log.lines.map(({ msg }) => msg);
  const exportBatch = async (lost: number, message: string) => {
    send(BATCH);
    const isDone = async () => messages().at(-1) === message && (await dropped()) === lost * BATCH;
    await eventually(isDone, message);
  };

  it('that stalls delays nothing for long, and the queue is bounded', async () => {
    await using stalled = startTraceReceiver(() => new Promise(() => {}));
    traces = startTraces({ OTEL_EXPORTER_OTLP_ENDPOINT: stalled.url, OTEL_EXPORTER_OTLP_TIMEOUT: '60000' });
    send(BATCH);
    await eventually(() => stalled.received.length === 1, 'the first export');
    expect(await dropped()).toBe(0);
    send(QUEUE + 100);
    expect(await dropped()).toBe(100);
    const timeout = Bun.sleep(30_000).then(() => 'waits for the collector');
    expect(await Promise.race([traces.close(), timeout])).toBeUndefined();
  });

  it('that is away is logged once, with the cause', async () => {
    traces = startTraces({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
    });
    for (const lost of [1, 2]) await exportBatch(lost, fails);
    expect(log.lines).toMatchObject([{ level: 'warn', msg: fails, cause: 'Error ECONNREFUSED' }]);
    await traces.close();
  });

  it('that responds with 500 costs its spans, and is logged when it fails and when it works again', async () => {
    let status = 500;
    await using broken = startTraceReceiver(() => new Response('a text', { status }));
    traces = startTraces({ OTEL_EXPORTER_OTLP_ENDPOINT: broken.url });
    for (const lost of [1, 2]) await exportBatch(lost, fails);
    status = 200;
    await exportBatch(2, works);
    status = 500;
    await exportBatch(3, fails);
    expect(messages()).toEqual([fails, works, fails]);
    expect(log.lines[0]).toMatchObject({ level: 'warn', cause: 'OTLPExporterError', status: 500 });
    await traces.close();
  });
});
