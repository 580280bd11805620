/** Observes every request to its end: writes one log line for each, and updates the metrics. */

import type { Logger } from 'pino';
import { isOutage } from '../http/proxy-status.ts';
import { requestPath } from '../http/request-target.ts';
import {
  type CallRecord,
  millisecondsSince,
  type RequestRecord,
  recordOf,
} from '../record/request-record.ts';
import { traceIdOf } from '../record/trace-context.ts';
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
  readonly record: RequestRecord;
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
    const record = recordOf(request);
    const route = this.#routeOf(request.url);
    const method = METHODS.has(request.method) ? request.method : 'other';
    const observed = { request, record, route, method };
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
    const { request, record, route } = observed;
    const { status } = response;
    const headMs = millisecondsSince(record.startedAt);
    this.#metrics?.responded(route, headMs);
    // Reading the signal creates it, which costs time, so it is read only when the request had to wait.
    const hasWaited = record.calls.length > 0 || record.reason === 'bodyIncomplete';
    if (hasWaited && request.signal.aborted) record.clientGone = 'waiting';
    if (record.bodyEnd) record.bodyEnd.then(() => this.#ended(observed, status, headMs));
    else this.#ended(observed, status, headMs);
    return response;
  }

  #ended({ record, route, method }: Observed, status: number, headMs: number): void {
    if (record.clientGone === 'waiting') record.forgetResponse();
    this.#metrics?.ended({ route, method, status, record });
    record.span?.end(status, record);
    const level = this.#levelOf(route, method, status, record);
    if (!this.#logger.isLevelEnabled(level)) return;
    const { headers, calls, refresh, refreshTokenReused, oauthError } = record;
    const { reason, cause, bytes, slices, clientGone, brokenBody } = record;
    this.#logger[level](
      {
        requestId: headers['x-request-id'],
        traceId: traceIdOf(headers),
        method,
        route,
        status,
        durationMs: millisecondsSince(record.startedAt),
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

  #levelOf(route: string, method: string, status: number, record: RequestRecord) {
    const { reason, brokenBody, clientGone, refreshTokenReused } = record;
    if (reason === 'internalError') return 'error';
    if (refreshTokenReused || record.calls.some(isRefreshOutage)) return 'warn';
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
function isRefreshOutage({ call, outcome }: CallRecord): boolean {
  return call === 'refresh' && typeof outcome === 'number' && isOutage(outcome);
}
