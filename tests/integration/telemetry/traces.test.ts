import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import type { LogLine } from '../../support/recorded-log.ts';
import { GENERATE, PROXIED_PATH } from '../../support/routes.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { type ReceivedSpan, startTraceReceiver } from '../../support/trace-receiver.ts';
import { ACCESS_ONLY, ORIGIN, request, SIGNED_IN } from '../../support/world.ts';

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
afterEach(async () => {
  await receiver[Symbol.asyncDispose]();
  await upstream.stop();
});

/** Runs requests before a gateway, stops it, and returns the spans that it has exported and its log. */
async function traced(run: (gateway: GatewayProcess) => unknown, settings: Record<string, string> = {}) {
  const lines: LogLine[] = [];
  const all = {
    UPSTREAM_URL: upstream.upstreamUrl,
    LOG_LEVEL: 'debug',
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    ...settings,
  };
  await using gateway = await startGatewayProcess(all, (line) => lines.push(JSON.parse(line)));
  await run(gateway);
  gateway.kill('SIGTERM');
  expect(await gateway.exited).toBe(0);
  await gateway[Symbol.asyncDispose]();
  expect(gateway.stderr()).toBe('');
  const { spans } = receiver;
  return {
    spans,
    server: spans.find(({ kind }) => kind === 'SERVER'),
    clients: spans.filter(({ kind }) => kind === 'CLIENT'),
    requests: lines.filter(({ msg }) => msg === 'request'),
  };
}

function read(path: string, options = {}) {
  return async ({ url }: GatewayProcess) => {
    await (await request(url + path, options)).arrayBuffer();
  };
}

/** The trace context that the upstream receives when this span is its parent. */
function contextFrom({ traceId, spanId }: ReceivedSpan): string {
  return `00-${traceId}-${spanId}-01`;
}

function call(name: string, method: string, status: number, port: number) {
  return {
    'http.request.method': method,
    'server.address': '127.0.0.1',
    'server.port': port,
    'music_gateway.call': name,
    'http.response.status_code': status,
    ...(status >= 400 && { 'error.type': String(status) }),
  };
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
    const { server, clients, requests } = await traced(read('/api/auth/session', { cookie: SIGNED_IN }));
    expect(server).toMatchObject({ name: 'GET /api/auth/session', parentSpanId: '', isError: false });
    expect(server?.attributes).toEqual({
      'http.request.method': 'GET',
      'http.route': '/api/auth/session',
      'http.response.status_code': 200,
      'music_gateway.refresh': 'renewed',
    });
    expect(server?.resource).toEqual({
      'service.name': 'music-gateway',
      'service.version': expect.any(String),
      'telemetry.sdk.language': 'nodejs',
      'telemetry.sdk.name': 'opentelemetry',
      'telemetry.sdk.version': expect.any(String),
    });
    const port = Number(new URL(upstream.upstreamUrl).port);
    expect(clients.map(({ name, attributes, isError }) => [name, attributes, isError])).toEqual([
      ['GET', call('me', 'GET', 401, port), true],
      ['POST', call('refresh', 'POST', 200, port), false],
      ['GET', call('me', 'GET', 200, port), false],
    ]);
    for (const { parentSpanId } of clients) expect(parentSpanId).toBe(server?.spanId ?? '');
    const parents = upstream.received.map(({ headers }) => headers.get('traceparent') ?? '');
    expect(parents).toEqual(clients.map(contextFrom));
    expect(requests).toMatchObject([{ traceId: server?.traceId }]);
  });

  it('of a generation end with the first byte of its body, and with its last', async () => {
    const first = Promise.withResolvers<void>();
    const track = async function* () {
      yield Buffer.alloc(100_000);
      await first.promise;
      yield Buffer.alloc(100_000);
    };
    upstream.on('POST /v1/music', () => new Response(track()));
    let continuedAt = 0;
    const { server, clients } = await traced(async ({ url }) => {
      const response = await request(url + GENERATE.path, GENERATE.options);
      continuedAt = Date.now();
      first.resolve();
      expect(await response.arrayBuffer()).toHaveProperty('byteLength', 200_000);
    });
    expect(server).toMatchObject({ name: 'POST /api/music/generate', isError: false });
    expect(clients).toMatchObject([{ name: 'POST', attributes: { 'music_gateway.call': 'music' } }]);
    // Both are read from clocks of their own, which differ by less than this.
    expect(clients[0]?.endedAt).toBeLessThan(continuedAt + 5);
    expect(server?.endedAt).toBeGreaterThan(continuedAt - 5);
  });

  it('of a sliced track are one for the request and one for its first call', async () => {
    const track = Buffer.alloc(1000, 'track');
    upstream.on(`GET ${PROXIED_PATH.replace('/api/upstream', '')}`, ({ headers }) => {
      const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.get('range') ?? '') ?? [];
      const end = Math.min(Number(last) + 1, track.length);
      const named = { etag: '"a"', 'content-range': `bytes ${first}-${end - 1}/${track.length}` };
      return new Response(track.subarray(Number(first), end), { status: 206, headers: named });
    });
    const run = read(PROXIED_PATH, { cookie: ACCESS_ONLY, headers: { range: 'bytes=0-' } });
    const { server, clients } = await traced(run, { RELAY_SLICE_BYTES: '400' });
    expect(server?.attributes).toMatchObject({ 'music_gateway.slices': 3 });
    expect(clients).toHaveLength(1);
  });

  it('of a request without an upstream are both errors', async () => {
    const run = read(PROXIED_PATH, { cookie: ACCESS_ONLY });
    const { server, clients } = await traced(run, { UPSTREAM_URL: NO_SERVER });
    expect(server).toMatchObject({ name: 'GET /api/upstream/*', isError: true });
    expect(server?.attributes).toMatchObject({
      'http.response.status_code': 502,
      'error.type': '502',
      'music_gateway.reason': 'upstreamUnreachable',
    });
    expect(clients).toMatchObject([{ isError: true, attributes: { 'error.type': 'connection_refused' } }]);
    expect(clients[0]?.attributes).not.toContainKey('http.response.status_code');
  });

  it.each([
    [`${NO_SERVER}/base`, '127.0.0.1', 1],
    ['http://[::1]', '::1', 80],
    ['https://[::1]', '::1', 443],
  ])('of calls to %s have the address %s and the port %d', async (url, address, port) => {
    const { clients } = await traced(read(PROXIED_PATH, { cookie: ACCESS_ONLY }), { UPSTREAM_URL: url });
    expect(clients).toMatchObject([{ attributes: { 'server.address': address, 'server.port': port } }]);
  });

  it('of a body that the upstream breaks off has the error of the body', async () => {
    let breakOff = () => {};
    await using broken = await startRawUpstream((socket) => {
      breakOff = () => void socket.end();
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n${'x'.repeat(100_000)}`);
    });
    const run = async ({ url }: GatewayProcess) => {
      const { body } = await request(url + PROXIED_PATH, { cookie: ACCESS_ONLY });
      const reading = async () => {
        for await (const _ of body ?? []) breakOff();
      };
      await expect(reading()).rejects.toThrow();
    };
    const { server } = await traced(run, { UPSTREAM_URL: broken.url });
    const attributes = { 'http.response.status_code': 200, 'error.type': 'http_response_incomplete' };
    expect(server).toMatchObject({ isError: true, attributes });
  });

  it('of a request whose client disconnects has neither a status nor an error', async () => {
    upstream.on('GET /v1/library', () => new Promise(() => {}));
    const client = new AbortController();
    const { server, clients } = await traced(async ({ url }) => {
      const gone = request(url + PROXIED_PATH, { cookie: ACCESS_ONLY, signal: client.signal });
      await upstream.arrived('GET /v1/library');
      client.abort();
      await expect(gone).rejects.toThrow();
    });
    const attributes = {
      'http.request.method': 'GET',
      'http.route': '/api/upstream/*',
      'music_gateway.client_gone': 'waiting',
    };
    expect(server).toMatchObject({ isError: false });
    expect(server?.attributes).toEqual(attributes);
    expect(clients).toMatchObject([{ attributes: { 'error.type': 'client_gone' } }]);
  });

  it.each([
    ['/a-secret?code=another', 'GET', 'GET', { 'http.request.method': 'GET' }, 403],
    ['/api/health', 'GET', 'GET /api/health', { 'http.route': '/api/health' }, 200],
    ['/api/health', 'PROPFIND', 'HTTP /api/health', { 'http.request.method': '_OTHER' }, 405],
    ['/api/music/models', 'OPTIONS', 'OPTIONS /api/music/models', {}, 204],
  ])('of %s by %s has the name %s', async (path, method, name, attributes, status) => {
    const origin = path === '/a-secret?code=another' ? 'https://evil.test' : ORIGIN;
    const { spans } = await traced(read(path, { method, origin }));
    expect(spans).toMatchObject([{ name, isError: false }]);
    expect(spans[0]?.attributes).toMatchObject({ ...attributes, 'http.response.status_code': status });
    expect('http.route' in (spans[0]?.attributes ?? {})).toBe(name !== 'GET');
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

  it('is continued, and goes on with the span of the call as the parent', async () => {
    const { server, clients, requests } = await traced(models(SAMPLED));
    expect(server).toMatchObject({ traceId: TRACE_ID, parentSpanId: CALLER, traceState: tracestate });
    expect(clients.map(contextFrom)).toEqual([sent('traceparent') ?? '']);
    expect(sent('tracestate')).toBe(tracestate);
    expect(requests).toMatchObject([{ traceId: TRACE_ID }]);
  });

  it('goes on without a span when it is not sampled', async () => {
    const { requests } = await traced(models(UNSAMPLED));
    expect(receiver.received).toEqual([]);
    expect(sent('traceparent')).toMatch(new RegExp(`^00-${TRACE_ID}-(?!0{16})[0-9a-f]{16}-00$`));
    expect(sent('tracestate')).toBe(tracestate);
    expect(requests).toMatchObject([{ traceId: TRACE_ID }]);
  });

  it('is not used when it is not valid', async () => {
    const { server, clients } = await traced(models('00-no-no-01'));
    expect(server).toMatchObject({ parentSpanId: '', traceState: '' });
    expect(clients.map(contextFrom)).toEqual([sent('traceparent') ?? '']);
    expect(sent('tracestate')).toBeNull();
  });

  it.each([
    ['', '', true],
    ['1', '', true],
    ['1', UNSAMPLED, false],
    ['0', SAMPLED, true],
    ['0', '', false],
  ])(
    'decides before OTEL_TRACES_SAMPLER_ARG=%s: with %j the trace is exported (%p)',
    async (share, traceparent, isSampled) => {
      const settings = { OTEL_TRACES_SAMPLER_ARG: share };
      const { spans } = await traced(models(traceparent), settings);
      expect(spans).toHaveLength(isSampled ? 2 : 0);
      expect(sent('traceparent')).toEndWith(isSampled ? '-01' : '-00');
    },
  );
});

describe('the export', () => {
  it('follows the variables of OpenTelemetry', async () => {
    const { spans } = await traced(read('/api/health'), {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/own/path`,
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20key',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_SERVICE_NAME: 'studio-gateway',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=unused,service.instance.id=a',
    });
    expect(spans).toMatchObject([
      { resource: { 'service.name': 'studio-gateway', 'service.instance.id': 'a' } },
    ]);
    const [{ path, headers } = { path: '', headers: new Headers() }] = receiver.received;
    expect(path).toBe('/own/path/v1/traces');
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/x-protobuf',
      'content-encoding': 'gzip',
      'api-key': 'a key',
    });
  });
});
