/** Observes every request to its end: writes one log line for each, and updates the metrics. */

import type { Logger } from 'pino';
import { isOutage } from '../http/proxy-status.ts';
import { requestPath } from '../http/request-target.ts';
import { type CallTrace, millisecondsSince, type RequestTrace, traceOf } from '../trace/request-trace.ts';
import { traceIdOf } from '../trace/trace-context.ts';
import type { Metrics } from './metrics.ts';
import type { Traces } from './traces.ts';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export interface TelemetryOptions {
  readonly logger: Logger;
  /** Undefined when metrics are disabled. */
  readonly metrics?: Metrics | undefined;
  /** Undefined when traces are disabled. */
  readonly traces?: Traces | undefined;
  /** The route patterns that identify requests. */
  readonly routes: () => readonly { readonly method: string; readonly path: string }[];
  /** Requested often, and by machines, so its log lines are at debug level. */
  readonly quietRoute: string;
}

interface Observed {
  readonly request: Request;
  readonly trace: RequestTrace;
  readonly route: string;
  readonly method: string;
}

export class Telemetry {
  readonly #logger: Logger;
  readonly #metrics: Metrics | undefined;
  readonly #traces: Traces | undefined;
  readonly #quietRoute: string;
  readonly #routes: TelemetryOptions['routes'];
  #patterns: ReadonlySet<string> | undefined;

  constructor({ logger, metrics, traces, routes, quietRoute }: TelemetryOptions) {
    this.#logger = logger;
    this.#metrics = metrics;
    this.#traces = traces;
    this.#routes = routes;
    this.#quietRoute = quietRoute;
  }

  /** @param handle responds to the request, synchronously or by a promise */
  observe(request: Request, handle: () => unknown): unknown {
    const trace = traceOf(request);
    const route = this.#routeOf(request.url);
    const method = METHODS.has(request.method) ? request.method : 'other';
    const observed = { request, trace, route, method };
    this.#metrics?.began(route);
    this.#traces?.begin(request.headers, observed);
    const result = handle();
    return result instanceof Promise
      ? result.then((response) => this.#responded(observed, response))
      : this.#responded(observed, result);
  }

  /** Makes the observer that logs and measures whether Redis responds. */
  redisObserver() {
    const gauge = this.#metrics?.redisGauge();
    let isDown = false;
    return {
      onDown: (cause: string) => {
        isDown = true;
        gauge?.set(0);
        this.#logger.warn({ cause }, 'Redis cannot be used; refreshes are not shared until it can');
      },
      onUp: () => {
        gauge?.set(1);
        if (isDown) this.#logger.info('Redis can be used again; refreshes are shared');
        isDown = false;
      },
    };
  }

  #responded(observed: Observed, response: unknown): unknown {
    if (!(response instanceof Response)) return response;
    const { request, trace, route } = observed;
    const { status } = response;
    const headMs = millisecondsSince(trace.startedAt);
    this.#metrics?.responded(route, headMs);
    // Reading the signal creates it, which costs time, so it is read only when the request had to wait.
    const hasWaited = trace.calls.length > 0 || trace.reason === 'bodyIncomplete';
    if (hasWaited && request.signal.aborted) trace.clientGone = 'waiting';
    if (trace.bodyEnd) trace.bodyEnd.then(() => this.#ended(observed, status, headMs));
    else this.#ended(observed, status, headMs);
    return response;
  }

  #ended({ trace, route, method }: Observed, status: number, headMs: number): void {
    if (trace.clientGone === 'waiting') trace.forgetResponse();
    this.#metrics?.ended({ route, method, status, trace });
    trace.span?.end(status, trace);
    const level = this.#levelOf(route, method, status, trace);
    if (!this.#logger.isLevelEnabled(level)) return;
    const { headers, calls, refresh, refreshTokenReused, oauthError } = trace;
    const { reason, cause, bytes, slices, clientGone, brokenBody } = trace;
    this.#logger[level](
      {
        requestId: headers['x-request-id'],
        traceId: traceIdOf(headers),
        method,
        route,
        status,
        durationMs: millisecondsSince(trace.startedAt),
        headMs,
        bytes,
        slices,
        upstream: calls.length ? calls : undefined,
        refresh,
        refreshTokenReused,
        oauthError,
        reason,
        cause,
        clientGone,
        brokenBody: brokenBody || undefined,
      },
      'request',
    );
  }

  #levelOf(route: string, method: string, status: number, trace: RequestTrace) {
    const { reason, brokenBody, clientGone, refreshTokenReused } = trace;
    if (reason === 'internalError') return 'error';
    if (refreshTokenReused || trace.calls.some(isRefreshOutage)) return 'warn';
    // Nobody can sign in until an operator corrects the client's registration.
    if (reason === 'clientRefused') return 'warn';
    // A response after the client has disconnected says nothing about the upstream.
    if ((status >= 500 && !clientGone) || brokenBody) return 'warn';
    return route === this.#quietRoute || method === 'OPTIONS' ? 'debug' : 'info';
  }

  #routeOf(url: string): string {
    this.#patterns ??= new Set(
      this.#routes()
        // Preflights match `/*`, which would match everything.
        .filter(({ method }) => method !== 'OPTIONS')
        .map(({ path }) => path),
    );
    const path = url.startsWith('/') ? url : requestPath(url);
    if (this.#patterns.has(path)) return path;
    for (const pattern of this.#patterns) {
      if (pattern.endsWith('/*') && path.startsWith(pattern.slice(0, -1))) return pattern;
    }
    return 'unmatched';
  }
}

/** Whether the upstream reported a problem of its own instead of a verdict on the refresh token. */
function isRefreshOutage({ call, outcome }: CallTrace): boolean {
  return call === 'refresh' && typeof outcome === 'number' && isOutage(outcome);
}
