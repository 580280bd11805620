import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { GENERATE, PROXIED_PATH } from '../../support/routes.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { startTraceReceiver, tracesTo } from '../../support/trace-receiver.ts';
import { ACCESS_ONLY, ORIGIN, request, SIGNED_IN, testSettings } from '../../support/world.ts';

const PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';
const SAMPLED = `00-${TRACE_ID}-${CALLER}-01`;
const UNSAMPLED = `00-${TRACE_ID}-${CALLER}-00`;
const NO_SERVER = 'http://127.0.0.1:1';

let upstream: ScriptedUpstream;
let receiver: ReturnType<typeof startTraceReceiver>;
beforeEach(() => {
  upstream = new ScriptedUpstream();
  receiver = startTraceReceiver();
});
afterEach(() => Promise.all([receiver[Symbol.asyncDispose](), upstream.stop()]));

/** What may differ from a gateway that exports every trace. */
interface Given {
  readonly upstreamUrl?: string;
  readonly share?: number;
  /** Of OpenTelemetry. */
  readonly variables?: Record<string, string>;
  readonly settings?: Record<string, string>;
}

/** Runs requests against a gateway, and returns the spans that it has exported and its log. */
async function traced(run: (url: string) => Promise<unknown>, given: Given = {}) {
  const { upstreamUrl = upstream.upstreamUrl, share = 1, settings = {} } = given;
  const { logger, lines, line } = recordLog();
  const traces = tracesTo(receiver.url, given.variables ?? {}, { logger, share });
  const addresses = { UPSTREAM_URL: upstreamUrl, IDP_URL: NO_SERVER };
  const gateway = createGateway({ logger, traces, settings: testSettings({ ...addresses, ...settings }) });
  gateway.listen({ port: 0, hostname: '127.0.0.1' });
  await run(`http://127.0.0.1:${gateway.server?.port}`);
  await line({ msg: 'request' });
  await gateway.stop(true);
  await traces.close();
  const { spans } = receiver;
  const server = spans.find(({ kind }) => kind === 'SERVER');
  return { spans, server, clients: spans.filter(({ kind }) => kind === 'CLIENT'), lines };
}

function read(path: string, options = {}) {
  return async (url: string) => {
    await (await request(url + path, options)).arrayBuffer();
  };
}
const readProxied = read(PROXIED_PATH, { cookie: ACCESS_ONLY });

/** The trace context that the upstream receives when this span is its parent. */
function contextFrom({ traceId, spanId }: { traceId: string; spanId: string }): string {
  return `00-${traceId}-${spanId}-01`;
}

describe('the spans', () => {
  it('of a session check with a refresh are the request and its three calls', async () => {
    upstream
      .on('GET /v1/me', ({ headers }) =>
        headers.get('authorization') === 'Bearer access-2'
          ? Response.json({})
          : new Response('', { status: 401 }),
      )
      .on('POST /v1/auth/refresh', () => Response.json(PAIR));
    const { server, clients, lines } = await traced(read('/api/auth/session', { cookie: SIGNED_IN }));
    expect(server).toMatchObject({ name: 'GET /api/auth/session', parentSpanId: '', isError: false });
    expect(server?.attributes).toEqual({
      'http.request.method': 'GET',
      'http.route': '/api/auth/session',
      'http.response.status_code': 200,
      'music_gateway.refresh': 'renewed',
    });
    expect(server?.resource).toMatchObject({
      'service.name': 'music-gateway',
      'service.version': expect.any(String),
    });
    const call = (name: string, method: string, status: number) => ({
      'http.request.method': method,
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(upstream.upstreamUrl).port),
      'music_gateway.call': name,
      'http.response.status_code': status,
      ...(status >= 400 && { 'error.type': String(status) }),
    });
    expect(clients.map(({ attributes }) => attributes)).toEqual([
      call('me', 'GET', 401),
      call('refresh', 'POST', 200),
      call('me', 'GET', 200),
    ]);
    const { spanId: parentSpanId = '' } = server ?? {};
    expect(clients).toMatchObject([
      { name: 'GET', parentSpanId, isError: true },
      { name: 'POST', parentSpanId, isError: false },
      { name: 'GET', parentSpanId, isError: false },
    ]);
    const parents = upstream.received.map(({ headers }) => headers.get('traceparent'));
    expect(parents).toEqual(clients.map(contextFrom));
    expect(lines).toMatchObject([{ traceId: server?.traceId }]);
  });

  it('of a generation end with the first byte of its body, and with its last', async () => {
    const readOn = Promise.withResolvers<void>();
    upstream.on('POST /v1/music', () => {
      const track = async function* () {
        yield Buffer.alloc(100_000);
        await readOn.promise;
      };
      return new Response(track());
    });
    const { server, clients } = await traced(async (url) => {
      const response = await request(url + GENERATE.path, GENERATE.options);
      await Bun.sleep(100);
      readOn.resolve();
      await response.arrayBuffer();
    });
    expect(clients).toMatchObject([{ name: 'POST', attributes: { 'music_gateway.call': 'music' } }]);
    expect((server?.endedAt ?? 0) - (clients[0]?.endedAt ?? 0)).toBeGreaterThan(90);
  });

  it('of a sliced track are one for the request and one for its first call', async () => {
    upstream.on('GET /v1/library', ({ headers }) => {
      const [, first = '', last] = /^bytes=(\d+)-(\d*)$/.exec(headers.get('range') ?? '') ?? [];
      const end = Math.min(Number(last) + 1, 1000);
      const named = { etag: '"a"', 'content-range': `bytes ${first}-${end - 1}/1000` };
      return new Response(Buffer.alloc(end - Number(first)), { status: 206, headers: named });
    });
    const run = read(PROXIED_PATH, { cookie: ACCESS_ONLY, headers: { range: 'bytes=0-' } });
    const { server, clients } = await traced(run, { settings: { RELAY_SLICE_BYTES: '400' } });
    expect(server?.attributes).toMatchObject({ 'music_gateway.slices': 3 });
    expect(clients).toHaveLength(1);
  });

  it.each([
    [`${NO_SERVER}/base`, '127.0.0.1', 1],
    ['http://[::1]', '::1', 80],
    ['https://[::1]', '::1', 443],
  ])('of a request without an upstream at %s are both errors', async (upstreamUrl, address, port) => {
    const { server, clients } = await traced(readProxied, { upstreamUrl });
    expect(server).toMatchObject({ name: 'GET /api/upstream/*', isError: true });
    expect(server?.attributes).toMatchObject({
      'http.response.status_code': 502,
      'error.type': '502',
      'music_gateway.reason': 'upstreamUnreachable',
    });
    const attributes = { 'error.type': 'connection_refused', 'server.address': address, 'server.port': port };
    expect(clients).toMatchObject([{ isError: true, attributes }]);
    expect(clients[0]?.attributes).not.toContainKey('http.response.status_code');
  });

  it('of a body that the upstream breaks off has the error of the body', async () => {
    let breakOff = () => {};
    await using broken = await startRawUpstream((socket) => {
      breakOff = () => void socket.end();
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n${'x'.repeat(100_000)}`);
    });
    const run = async (url: string) => {
      const { body } = await request(url + PROXIED_PATH, { cookie: ACCESS_ONLY });
      const reading = async () => {
        for await (const _ of body ?? []) breakOff();
      };
      await expect(reading()).rejects.toThrow();
    };
    const { server } = await traced(run, { upstreamUrl: broken.url });
    const attributes = { 'http.response.status_code': 200, 'error.type': 'http_response_incomplete' };
    expect(server).toMatchObject({ isError: true, attributes });
  });

  it('of a request whose client disconnects has neither a status nor an error', async () => {
    upstream.on('GET /v1/library', () => new Promise(() => {}));
    const client = new AbortController();
    const { server, clients } = await traced(async (url) => {
      const gone = request(url + PROXIED_PATH, { cookie: ACCESS_ONLY, signal: client.signal });
      await upstream.arrived('GET /v1/library');
      client.abort();
      await expect(gone).rejects.toThrow();
    });
    expect(server?.isError).toBe(false);
    expect(server?.attributes).toEqual({
      'http.request.method': 'GET',
      'http.route': '/api/upstream/*',
      'music_gateway.client_gone': 'waiting',
    });
    expect(clients).toMatchObject([{ attributes: { 'error.type': 'client_gone' } }]);
  });

  it.each([
    ['/a-path?code=another', 'GET', 'GET', { 'http.request.method': 'GET' }],
    ['/api/health', 'GET', 'GET /api/health', { 'http.request.method': 'GET', 'http.route': '/api/health' }],
    [
      '/api/health',
      'PROPFIND',
      'HTTP /api/health',
      { 'http.request.method': '_OTHER', 'http.route': '/api/health' },
    ],
  ])('of %s by %s has the name %s', async (path, method, name, attributes) => {
    const { spans } = await traced(read(path, { method, origin: ORIGIN }));
    expect(spans).toMatchObject([{ name, isError: false }]);
    const {
      'http.response.status_code': _,
      'music_gateway.reason': __,
      ...others
    } = spans[0]?.attributes ?? {};
    expect(others).toEqual(attributes);
  });
});

describe('the trace context of the caller', () => {
  const tracestate = 'vendor=opaque,other=1';
  const models = (traceparent: string) =>
    read('/api/music/models', { cookie: ACCESS_ONLY, headers: { traceparent, tracestate } });
  beforeEach(() => {
    upstream.on('GET /v1/models', () => Response.json({}));
  });
  const sent = (name: string) => upstream.last('GET /v1/models').headers.get(name);

  it.each([
    [SAMPLED, new RegExp(`^00-${TRACE_ID}-(?!${CALLER})[0-9a-f]{16}-01$`), 2],
    [UNSAMPLED, new RegExp(`^00-${TRACE_ID}-(?!0{16})[0-9a-f]{16}-00$`), 0],
  ])(
    'is continued with the span of the call as the parent, or with none: %s',
    async (context, passedOn, count) => {
      const { spans, server, clients, lines } = await traced(models(context));
      expect(sent('traceparent')).toMatch(passedOn);
      expect(sent('tracestate')).toBe(tracestate);
      expect(lines).toMatchObject([{ traceId: TRACE_ID }]);
      expect(spans).toHaveLength(count);
      if (count === 0) return expect(receiver.received).toEqual([]);
      expect(server).toMatchObject({ traceId: TRACE_ID, parentSpanId: CALLER, traceState: tracestate });
      expect(clients.map(contextFrom)).toEqual([sent('traceparent') ?? '']);
    },
  );

  it('is not used when it is not valid', async () => {
    const { server, clients } = await traced(models('00-no-no-01'));
    expect(server).toMatchObject({ parentSpanId: '', traceState: '' });
    expect(clients.map(contextFrom)).toEqual([sent('traceparent') ?? '']);
    expect(sent('tracestate')).toBeNull();
  });

  it.each([
    [1, '', true],
    [0, SAMPLED, true],
    [0, '', false],
  ])(
    'decides before the share of %d: with %j the trace is exported (%p)',
    async (share, traceparent, isSampled) => {
      const { spans } = await traced(models(traceparent), { share });
      expect(spans).toHaveLength(isSampled ? 2 : 0);
      expect(sent('traceparent')).toEndWith(isSampled ? '-01' : '-00');
    },
  );
});

it('the export follows the variables of OpenTelemetry', async () => {
  const variables = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/own/path`,
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20key',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_SERVICE_NAME: 'studio-gateway',
    OTEL_RESOURCE_ATTRIBUTES: 'service.name=unused,service.instance.id=a',
  };
  const { server } = await traced(read('/api/health'), { variables });
  expect(server?.resource).toMatchObject({ 'service.name': 'studio-gateway', 'service.instance.id': 'a' });
  const [{ path, headers } = expect.unreachable()] = receiver.received;
  expect(path).toBe('/own/path/v1/traces');
  expect(Object.fromEntries(headers)).toMatchObject({
    'content-type': 'application/x-protobuf',
    'content-encoding': 'gzip',
    'api-key': 'a key',
  });
});
