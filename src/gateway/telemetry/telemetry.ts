/** Observes every request to its end: writes one log line for each, and updates the metrics. */

import type { Logger } from 'pino';
import { type Exchange, requestPath } from '../exchange/exchange.ts';
import { isOutage } from '../http/proxy-status.ts';
import { type CallRecord, millisecondsSince, type RequestRecord } from '../record/request-record.ts';
import type { Metrics } from './metrics.ts';
import type { Traces } from './traces.ts';

/** What a gateway reports to. */
export interface Reporting {
  readonly logger: Logger;
  readonly metrics?: Metrics | undefined;
  readonly traces?: Traces | undefined;
}

interface TelemetryOptions extends Reporting {
  /** The routes by whose paths requests are counted. */
  readonly routes: () => readonly { readonly method: string; readonly path: string }[];
  /** Requested often, and by machines, so its log lines are at debug level. */
  readonly quietRoute: string;
}

/** What a request gets that may have waited without a call. */
const WAITED = new Set<string | undefined>(['bodyIncomplete', 'overloaded', 'sessionBusy']);

export class Telemetry {
  readonly #options: TelemetryOptions;
  #patterns: ReadonlySet<string> | undefined;

  constructor(options: TelemetryOptions) {
    this.#options = options;
  }

  began({ request, record }: Exchange): void {
    const { metrics, traces } = this.#options;
    record.route = this.#routeOf(request.url);
    metrics?.began(record);
    traces?.begin(request.headers, record);
  }

  responded({ request, record }: Exchange, response: Response): void {
    record.status = response.status;
    record.headMs = millisecondsSince(record.startedAt);
    this.#options.metrics?.responded(record);
    // Reading the signal creates it, which costs time, so it is read only when the request may have waited.
    const hasWaited = record.calls.length > 0 || WAITED.has(record.reason);
    if (hasWaited && request.signal.aborted) record.clientGone = 'waiting';
  }

  ended({ record }: Exchange): void {
    const { logger, metrics } = this.#options;
    if (record.clientGone === 'waiting') {
      // The client never received the response, so nothing is noted of it.
      record.reason = undefined;
      record.cause = undefined;
      record.pool = undefined;
      record.bytes = 0;
    }
    metrics?.ended(record);
    record.span?.end(record);
    const level = this.#levelOf(record);
    if (logger.isLevelEnabled(level)) logger[level](record.logFields(), 'request');
    // These lines explain why a user was signed out, so they do not wait for others: the process may be killed.
    if (record.refresh || record.route === '/api/auth/logout') logger.flush();
  }

  /** Makes the observer that logs and measures whether Redis responds. */
  redisObserver() {
    const { logger, metrics } = this.#options;
    const gauge = metrics?.redisGauge();
    let isDown = false;
    return {
      onDown: (cause: string) => {
        isDown = true;
        gauge?.set(0);
        logger.warn({ cause }, 'Redis cannot be used; refreshes are not shared until it can');
      },
      onUp: () => {
        gauge?.set(1);
        if (isDown) logger.info('Redis can be used again; refreshes are shared');
        isDown = false;
      },
    };
  }

  #levelOf(record: RequestRecord) {
    const { route, method, status, reason, tokenProblem, brokenBody, clientGone, cutOff } = record;
    if (reason === 'internalError') return 'error';
    if (record.refreshTokenReused || record.calls.some(isRefreshOutage)) return 'warn';
    // Nobody can sign in, or stay signed in, until an operator corrects the client's registration, or the server behind.
    if (reason === 'clientRefused' || tokenProblem) return 'warn';
    // What has failed after the client has disconnected says nothing about the upstream.
    if ((status >= 500 && !clientGone) || brokenBody || cutOff === 'no memory') return 'warn';
    return route === this.#options.quietRoute || method === 'OPTIONS' ? 'debug' : 'info';
  }

  #routeOf(url: string): string {
    this.#patterns ??= new Set(
      this.#options
        .routes()
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
