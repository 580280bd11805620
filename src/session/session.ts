/** The derive() that gives a handler its session: the authenticated way to the upstream, with one refresh. */

import { type Context, Elysia } from 'elysia';
import { GatewayError } from '../http/errors.ts';
import { type Connection, withoutIdleTimeout } from '../http/idle-timeout.ts';
import { messages } from '../http/messages.ts';
import type { Settings } from '../settings.ts';
import { discard, fetchUpstream, type UpstreamCall } from '../upstream/fetch-upstream.ts';
import type { SharedRefresh } from '../upstream/shared-refresh.ts';
import type { TokenPair } from '../upstream/token-pair.ts';
import { clearSessionCookies, parseSessionCookies, type SessionTokens, storeTokenPair } from './cookies.ts';

/** The request under way, and where the headers of its answer are set. */
interface Exchange extends Connection {
  readonly set: Context['set'];
}

export class Session {
  readonly #settings: Settings;
  readonly #sharedRefresh: SharedRefresh;
  readonly #exchange: Exchange;
  #tokens: SessionTokens | undefined;

  /** Costs next to nothing: the cookies are read when they are first asked for. */
  constructor(settings: Settings, sharedRefresh: SharedRefresh, exchange: Exchange) {
    this.#settings = settings;
    this.#sharedRefresh = sharedRefresh;
    this.#exchange = exchange;
  }

  get tokens(): SessionTokens {
    this.#tokens ??= parseSessionCookies(this.#exchange.request.headers.get('cookie'));
    return this.#tokens;
  }

  get exists(): boolean {
    return this.tokens.accessToken !== undefined || this.tokens.refreshToken !== undefined;
  }

  /** @throws GatewayError 401 when neither session cookie is there */
  require(): void {
    if (!this.exists) throw new GatewayError(401, messages.notSignedIn);
  }

  /**
   * Calls the upstream with the access token. After a 401, or without an access token, it refreshes once, stores the
   * new pair in the cookies and calls again; when the refresh cannot be made, the first answer stands.
   *
   * @throws GatewayError 401 without a session or when the upstream ends it, 502 when the upstream cannot be reached
   * @see RFC 6750 section 2.1
   */
  async fetch(call: UpstreamCall): Promise<Response> {
    // A cache must not give to one user what was answered to another.
    this.#exchange.set.headers['vary'] = 'Origin, Cookie';
    return withoutIdleTimeout(this.#exchange, async () => {
      const { accessToken, refreshToken } = this.tokens;
      const first = accessToken === undefined ? undefined : await send(call, accessToken);
      const unauthorized = first === undefined || first.status === 401;
      if (unauthorized && refreshToken !== undefined) return this.#renew(call, refreshToken, first);
      if (first) return first;
      throw new GatewayError(401, messages.notSignedIn);
    });
  }

  async #renew(call: UpstreamCall, refreshToken: string, first: Response | undefined): Promise<Response> {
    const outcome = await this.#sharedRefresh(refreshToken);
    if (outcome.kind === 'unreachable') {
      if (first) return first;
      throw new GatewayError(502, messages.upstreamUnreachable, { cause: outcome.cause });
    }
    if (first) await discard(first);
    switch (outcome.kind) {
      case 'renewed':
        this.store(outcome.pair);
        return send(call, outcome.pair.accessToken);
      case 'rejected':
        this.clear();
        throw new GatewayError(401, messages.sessionEnded);
    }
  }

  /** @throws GatewayError 502 when a token is too large for a cookie */
  store(pair: TokenPair): void {
    storeTokenPair(this.#exchange.set, pair, this.#settings.production);
  }

  clear(): void {
    clearSessionCookies(this.#exchange.set, this.#settings.production);
  }
}

function send(call: UpstreamCall, accessToken: string): Promise<Response> {
  const headers = { accept: 'application/json', ...call.headers, authorization: `Bearer ${accessToken}` };
  return fetchUpstream({ ...call, headers });
}

export function createSessionPlugin(settings: Settings, sharedRefresh: SharedRefresh) {
  return new Elysia({ name: 'session' }).derive({ as: 'scoped' }, ({ request, server, set }) => ({
    session: new Session(settings, sharedRefresh, { request, server, set }),
  }));
}

export type SessionPlugin = ReturnType<typeof createSessionPlugin>;
