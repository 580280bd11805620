import { expect, it } from 'bun:test';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { GENERATE, PROXIED_PATH } from '../../support/routes.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { ACCESS_ONLY, request, SIGNED_IN, testSettings } from '../../support/world.ts';
import { startTraceReceiver, tracesTo } from './trace-receiver.ts';

/** Sends a request to a gateway in front of this upstream, and returns the spans that it has exported and its log line. */
async function traced(upstream: ScriptedUpstream, send: (url: string) => Promise<unknown>) {
  await using receiver = startTraceReceiver();
  const log = recordLog();
  const traces = tracesTo(receiver.url, {}, log);
  const addresses = { UPSTREAM_URL: upstream.upstreamUrl, IDP_URL: upstream.identityProviderUrl };
  const settings = testSettings({ ...addresses, RELAY_SLICE_BYTES: '400' });
  const gateway = createGateway({ ...log, traces, settings });
  gateway.listen({ port: 0, hostname: '127.0.0.1' });
  await send(`http://127.0.0.1:${gateway.server?.port}`);
  const line = await log.line({ msg: 'request' });
  await gateway.stop(true);
  await traces.close();
  await upstream.stop();
  const spans = receiver.spans.toSorted((one, other) => one.kind.localeCompare(other.kind));
  return { line, server: spans.pop() ?? expect.unreachable(), clients: spans };
}

it('a session check with a refresh has spans of the request and its three calls, whose parents the upstream learns', async () => {
  const upstream = new ScriptedUpstream();
  upstream
    .on(
      'GET /v1/me',
      ({ headers }) =>
        new Response('{}', { status: headers.get('authorization') === 'Bearer b' ? 200 : 401 }),
    )
    .on('POST /v1/auth/refresh', () => Response.json({ access_token: 'b', refresh_token: 'c' }));
  const { server, clients, line } = await traced(upstream, (url) =>
    request(`${url}/api/auth/session`, { cookie: SIGNED_IN, headers: { tracestate: 'a=b' } }),
  );
  expect(server).toMatchObject({
    name: 'GET /api/auth/session',
    attributes: { 'music_gateway.refresh': 'renewed' },
  });
  expect(line['traceId']).toBe(server.traceId);
  const calls = clients.map(({ parentSpanId, attributes }) => [
    parentSpanId,
    attributes['music_gateway.call'],
    attributes['http.response.status_code'],
  ]);
  expect(calls).toEqual([
    [server.spanId, 'me', 401],
    [server.spanId, 'refresh', 200],
    [server.spanId, 'me', 200],
  ]);
  const parents = upstream.received.map(({ headers }) => headers.get('traceparent'));
  expect(parents).toEqual(clients.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`));
});

it('the spans of a generation end with the first byte of its body, and with its last', async () => {
  const readOn = Promise.withResolvers<void>();
  const upstream = new ScriptedUpstream();
  upstream.on('POST /v1/music', () => {
    const track = async function* () {
      yield Buffer.alloc(100_000);
      await readOn.promise;
    };
    return new Response(track());
  });
  const { server, clients } = await traced(upstream, async (url) => {
    const response = await request(url + GENERATE.path, GENERATE.options);
    await Bun.sleep(100);
    readOn.resolve();
    await response.arrayBuffer();
  });
  expect(clients).toMatchObject([{ attributes: { 'music_gateway.call': 'music' } }]);
  expect(server.endedAt - (clients[0]?.endedAt ?? Number.POSITIVE_INFINITY)).toBeGreaterThan(90);
});

it('a sliced track has one span for the request and one for its first call', async () => {
  const upstream = new ScriptedUpstream();
  upstream.on('GET /v1/library', ({ headers }) => {
    const [, first = '', last] = /^bytes=(\d+)-(\d*)$/.exec(headers.get('range') ?? '') ?? [];
    const end = Math.min(Number(last) + 1, 1000);
    const named = { etag: '"a"', 'content-range': `bytes ${first}-${end - 1}/1000` };
    return new Response(Buffer.alloc(end - Number(first)), { status: 206, headers: named });
  });
  const { server, clients } = await traced(upstream, async (url) => {
    const options = { cookie: ACCESS_ONLY, headers: { range: 'bytes=0-' } };
    await (await request(url + PROXIED_PATH, options)).arrayBuffer();
  });
  expect(server.attributes).toMatchObject({ 'music_gateway.slices': 3 });
  expect(clients).toHaveLength(1);
});
