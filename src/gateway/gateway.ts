/** Assembles the gateway: error envelope, CORS, origin rule and routes. */

import { cors } from '@elysiajs/cors';
import { Elysia, NotFoundError } from 'elysia';
import { Admission } from './admission/admission.ts';
import { LADDER } from './admission/ladder.ts';
import { Exchange, exchangeOf, IDLE_TIMEOUT_SECONDS, requestPath } from './exchange/exchange.ts';
import { OpenExchanges } from './exchange/open-exchanges.ts';
import { OriginRule } from './exchange/origin-rule.ts';
import { FairTurns } from './fair-turns.ts';
import { clientAddressHeaders } from './http/client-address.ts';
import { CLOSE, GatewayError, methodNotAllowed } from './http/errors.ts';
import { DROPPED_REQUEST_HEADERS, EXPOSED_HEADERS, REQUEST_HEADERS } from './http/forwarded-headers.ts';
import { RefreshCoordinator } from './refresh/coordinator.ts';
import { MemoryReplayStore } from './refresh/memory-store.ts';
import { RedisConnection } from './refresh/redis-connection.ts';
import { RedisReplayStore } from './refresh/redis-store.ts';
import { authRoutes } from './routes/auth.ts';
import { musicRoutes } from './routes/music.ts';
import { PROXIED_METHODS, upstreamProxyRoutes } from './routes/upstream-proxy.ts';
import { SessionCookies } from './session/cookies.ts';
import { createSessionPlugin } from './session/session.ts';
import type { Settings } from './settings/settings.ts';
import { type Reporting, Telemetry } from './telemetry/telemetry.ts';
import { UpstreamApi } from './upstream/upstream-api.ts';

interface GatewayOptions extends Reporting {
  readonly settings: Settings;
  readonly admission?: Admission;
}

/** Open to requests of any origin, and to those without one. */
const HEALTH_PATH = '/api/health';
const OPENAPI_PATH = '/api/openapi.json';

export type Gateway = ReturnType<typeof createGateway>;

export function createGateway({
  settings,
  logger,
  metrics,
  traces,
  admission = new Admission(settings),
}: GatewayOptions) {
  const { forwardClientAddress, isTrustedProxy, production, redisUrl, serviceName } = settings;
  const openToAll = new Set(production ? [HEALTH_PATH] : [HEALTH_PATH, OPENAPI_PATH]);
  const routes = (): readonly Route[] => gateway.routes;
  const telemetry = new Telemetry({ logger, metrics, traces, routes, quietRoute: HEALTH_PATH });
  const redis = redisUrl === undefined ? undefined : new RedisConnection(redisUrl, telemetry.redisObserver());
  redis?.keepAlive();
  const replayStore = redis
    ? new RedisReplayStore(redis, admission.ledger)
    : new MemoryReplayStore(admission.ledger);
  metrics?.watch(admission);
  const api = new UpstreamApi(settings, admission);
  const refreshCoordinator = new RefreshCoordinator(settings, replayStore, api);
  const cookies = new SessionCookies(settings.cookies);
  const parts = { settings, api, admission, cookies, refreshCoordinator };
  const sessionPlugin = createSessionPlugin(parts);
  const originRule = new OriginRule(settings);
  const exchanges = new OpenExchanges(telemetry);
  const turns = new FairTurns();
  const gateway = new Elysia({
    name: 'gateway',
    strictPath: true,
    // Without this, Elysia assumes a host name of usual length when it looks for the start of the path.
    handler: { standardHostname: false },
    serve: {
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      // The gateway's own limit is smaller, and its 413 has the envelope and CORS headers, unlike Bun's.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      development: false,
      // By default, Elysia lets a second gateway share the port without an error.
      reusePort: false,
    },
  })
    // Wraps every request, including refusals and preflights, because no Elysia hook sees the end of those.
    // A hook that takes `server` from its context would make Elysia define that property for every request, which is slow.
    .wrap(
      (handle, request) => () =>
        exchanges.run(new Exchange(request, gateway.server), () => turns.handle(request, handle)),
    )
    .headers({ 'x-content-type-options': 'nosniff' })
    .onRequest(({ request, set }) => {
      const exchange = exchangeOf(request);
      exchange.set = set;
      set.headers['x-request-id'] = exchange.record.headers['x-request-id'];
      // A connection that nobody uses is in no ledger. Those of a flood must not stay when there is no memory.
      if (admission.ledger.isOvercharged(LADDER.session)) Object.assign(set.headers, CLOSE);
    })
    .onError(({ error, request }) => {
      const failure = toGatewayError(error, request, routes());
      return exchangeOf(request).fail(failure);
    })
    // CORS comes before the origin rule, so that the 403 carries CORS headers and preflights get a response.
    .use(
      cors({
        origin: (request) => originRule.names(exchangeOf(request)),
        // A string, because the plugin would join an array for every response.
        methods: PROXIED_METHODS.join(', '),
        allowedHeaders: [...REQUEST_HEADERS, ...DROPPED_REQUEST_HEADERS],
        exposeHeaders: EXPOSED_HEADERS,
        credentials: true,
        maxAge: 600,
      }),
    )
    .onRequest(({ request }) => {
      // A load balancer may check health without a Host header. Any other request without one is refused: it has no
      // absolute URL, and Elysia would look for its path in the query.
      if (request.url === HEALTH_PATH) return undefined;
      if (request.url.startsWith('/')) throw new GatewayError(400, 'requestInvalid');
      const exchange = exchangeOf(request);
      // Returned, not thrown: a throw costs more, and any site can send such requests.
      if (!originRule.allows(exchange) && !openToAll.has(requestPath(request.url)))
        return exchange.fail(originRule.refusal(exchange));
      if (forwardClientAddress)
        exchange.record.clientAddressHeaders = clientAddressHeaders(request, gateway.server, isTrustedProxy);
      return undefined;
    })
    .use(new Elysia({ name: 'health' }).get(HEALTH_PATH, () => ({ service: serviceName, status: 'ok' })))
    .use(authRoutes(parts, sessionPlugin))
    .use(musicRoutes(parts, sessionPlugin))
    .use(upstreamProxyRoutes(parts, sessionPlugin));
  if (!production) {
    gateway.get(OPENAPI_PATH, async () => {
      // Not imported at the start, which it would slow down. The container does not include the file.
      const file: { default: object } = await import('./openapi/openapi.yaml').catch(() => {
        throw new GatewayError(404, 'notFound');
      });
      return file.default;
    });
  }
  // A stop waits for these, too: Bun does not wait for a request whose client has left, but its calls must still finish.
  return Object.assign(gateway, { exchanges });
}

interface Route {
  readonly method: string;
  readonly path: string;
}

function toGatewayError(error: unknown, request: Request, routes: readonly Route[]): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof NotFoundError) {
    const allowed = allowedMethods(request, routes);
    return allowed.length ? methodNotAllowed(allowed) : new GatewayError(404, 'notFound');
  }
  return new GatewayError(500, 'internalError', { cause: error });
}

/** The methods that the requested path supports; empty when the path has no route. */
function allowedMethods({ url }: Request, routes: readonly Route[]): string[] {
  const path = requestPath(url);
  return routes
    .filter((route) => route.path === path && route.method !== 'OPTIONS')
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : method));
}
