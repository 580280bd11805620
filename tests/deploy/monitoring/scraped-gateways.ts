/** Two gateways that Prometheus watches, and an upstream that does all that an upstream can do to them. */

import { freePorts } from '../../support/free-ports.ts';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { startRedis } from '../../support/redis.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';

const TRACK = Buffer.alloc(300_000, 'music');

export type WatchedGateways = Awaited<ReturnType<typeof startWatchedGateways>>;

export async function startWatchedGateways() {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const upstream = script(new ScriptedUpstream());
  stack.defer(() => upstream.stop());
  const breaking = stack.use(
    await startRawUpstream((socket, request) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${TRACK.length + 1}\r\n\r\n`);
      socket.write(TRACK);
      if (!request.includes('/endless')) socket.end();
    }),
  );
  const port = await freePorts(2);
  const [main, small] = await Promise.all([
    startGatewayProcess({
      TIMEOUT_SIGN_IN_MS: '400',
      TIMEOUT_READ_MS: '400',
      UPSTREAM_URL: upstream.upstreamUrl,
      IDP_URL: upstream.identityProviderUrl,
      METRICS_PORT: String(port),
      REDIS_URL: redis.url,
    }),
    startGatewayProcess({
      UPSTREAM_URL: breaking.url,
      METRICS_PORT: String(port + 1),
      MAX_IN_FLIGHT_REQUESTS: '1',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    }),
  ]);
  stack.use(main);
  stack.use(small);
  const started = stack.move();
  return {
    /** With Redis and an identity provider. */
    main,
    /** Without Redis, an identity provider or a collector; full with one request; its upstream breaks off every body. */
    small,
    /** Host and port of their metrics, in that order. */
    targets: [`127.0.0.1:${port}`, `127.0.0.1:${port + 1}`] as const,
    upstream,
    /** That of `main`. */
    redis,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** The token, the code or the path of a call decides what the upstream does with it. */
function script(upstream: ScriptedUpstream): ScriptedUpstream {
  let tokens = 0;
  const pair = (accessToken: string) =>
    Response.json({ access_token: accessToken, refresh_token: `refresh-${++tokens}`, expires_in: 600 });
  return upstream
    .on('POST /oauth/token', ({ body }) => {
      const code = new URLSearchParams(body).get('code');
      return code === 'refused' ? new Response('', { status: 400 }) : Response.json({ access_token: code });
    })
    .on('POST /v1/auth/idp', ({ body }) =>
      pair(JSON.parse(body).access_token === 'large' ? 'x'.repeat(5000) : 'access'),
    )
    .on('POST /v1/auth/refresh', ({ body }) => {
      const { refresh_token: token } = JSON.parse(body);
      if (token.startsWith('late')) return never();
      if (token.startsWith('failing')) return new Response('', { status: 503 });
      return token.startsWith('ended') ? new Response('', { status: 401 }) : pair('access');
    })
    .on('POST /v1/auth/logout', () => new Response(null, { status: 204 }))
    .on('GET /v1/me', ({ headers }) => {
      const token = headers.get('authorization')?.slice('Bearer '.length);
      if (token === 'late') return never();
      const status = { expired: 401, failing: 503 }[token ?? ''] ?? 200;
      return Response.json({ name: 'Ada' }, { status });
    })
    .on('GET /v1/models', () => Response.json({ data: [{ id: 'music-1' }] }))
    .on('POST /v1/music', track)
    .on('GET /v1/library/track', track)
    .on(
      'GET /v1/library/endless',
      () => new Response(new ReadableStream({ start: (body) => body.enqueue(TRACK) })),
    )
    .on('GET /v1/library/late', never)
    .on('GET /v1/library/missing', () => new Response('', { status: 404 }))
    .on('GET /v1/library/moved', () => new Response(null, { status: 304 }));
}

function never(): Promise<Response> {
  return new Promise(() => {});
}

function track(): Response {
  return new Response(TRACK, { headers: { 'content-type': 'audio/mpeg' } });
}
