/** The derive() that gives a handler its session: the authenticated way to the upstream, with one refresh. */

import { type Context, Elysia } from 'elysia';
import { GatewayError } from '../http/errors.ts';
import { type Connection, withoutIdleTimeout } from '../http/idle-timeout.ts';
import { messages } from '../http/messages.ts';
import { proxyErrorOf, proxyStatus } from '../http/proxy-status.ts';
import { traceOf } from '../http/request-trace.ts';
import type { Settings } from '../settings.ts';
import { fetchUpstream, type UpstreamCall } from '../upstream/fetch-upstream.ts';
import { signOut } from '../upstream/session-endpoints.ts';
import type { SharedRefresh } from '../upstream/shared-refresh.ts';
import type { TokenPair } from '../upstream/token-pair.ts';
import { discard, type UpstreamAnswer } from '../upstream/upstream-answer.ts';
import { SessionCookies, type SessionTokens } from './cookies.ts';

/** The request under way, and where the headers of its answer are set. */
interface RequestContext extends Connection {
  readonly set: Context['set'];
}

export class Session {
  readonly #settings: Settings;
  readonly #cookies: SessionCookies;
  readonly #sharedRefresh: SharedRefresh;
  readonly #context: RequestContext;
  #tokens: SessionTokens | undefined;

  /** Costs next to nothing: the cookies are read when they are first asked for. */
  constructor(
    settings: Settings,
    cookies: SessionCookies,
    sharedRefresh: SharedRefresh,
    context: RequestContext,
  ) {
    this.#settings = settings;
    this.#cookies = cookies;
    this.#sharedRefresh = sharedRefresh;
    this.#context = context;
  }

  async hasTokens(): Promise<boolean> {
    const { accessToken, refreshToken } = await this.#readTokens();
    return accessToken !== undefined || refreshToken !== undefined;
  }

  /** @throws GatewayError 401 when neither session cookie is there */
  async requireTokens(): Promise<void> {
    if (!(await this.hasTokens())) throw new GatewayError(401, messages.notSignedIn);
  }

  /**
   * Calls the upstream with the access token. After a 401, or without an access token, it refreshes once, stores the
   * new pair in the cookies and calls again; when the refresh cannot be made, the first answer stands.
   *
   * @throws GatewayError 401 without a session or when the upstream ends it, 502 when the upstream cannot be reached
   * @see RFC 6750 section 2.1
   */
  fetch(call: UpstreamCall): Promise<UpstreamAnswer> {
    // A cache must not give to one user what was answered to another.
    this.#context.set.headers['vary'] = 'Origin, Cookie';
    const longestMs = 2 * call.timeoutMs + this.#settings.timeouts.signInMs;
    return withoutIdleTimeout(this.#context, longestMs, () => this.#call(call));
  }

  async #call(call: UpstreamCall): Promise<UpstreamAnswer> {
    const { accessToken, refreshToken } = this.#tokens ?? (await this.#readTokens());
    const first = accessToken === undefined ? undefined : await send(call, accessToken);
    const unauthorized = first === undefined || first.status === 401;
    if (unauthorized && refreshToken !== undefined) return this.#renew(call, refreshToken, first);
    if (first) return first;
    throw new GatewayError(401, messages.notSignedIn);
  }

  async #renew(
    call: UpstreamCall,
    refreshToken: string,
    first: UpstreamAnswer | undefined,
  ): Promise<UpstreamAnswer> {
    const outcome = await this.#sharedRefresh.refresh(refreshToken, call.trace);
    switch (outcome.kind) {
      case 'renewed':
        if (first) await discard(first);
        await this.store(outcome.pair);
        // So that a page can show it; the cookies tell it nothing.
        this.#context.set.headers['server-timing'] = 'refresh';
        return this.#sendRenewed(call, outcome.pair);
      case 'rejected':
        if (first) await discard(first);
        this.#cookies.clear(this.#context.set);
        throw new GatewayError(401, messages.sessionEnded);
      case 'unreachable': {
        const { cause } = outcome;
        const headers = cause instanceof GatewayError ? cause.headers : proxyStatus(proxyErrorOf(cause));
        if (!first) throw new GatewayError(502, messages.upstreamUnreachable, { cause, headers });
        // So that a client does not take this 401 for the end of the session.
        Object.assign(this.#context.set.headers, headers);
        return first;
      }
    }
  }

  /** The call may take minutes: the cookies that leave with its answer are the newest of that moment. */
  async #sendRenewed(call: UpstreamCall, pair: TokenPair): Promise<UpstreamAnswer> {
    try {
      return await send(call, pair.accessToken);
    } finally {
      const newest = await this.#sharedRefresh.newest(pair);
      if (!newest) this.#forgetRenewal();
      else if (newest !== pair) await this.store(newest);
    }
  }

  /** For a session that was signed out while its call was under way. */
  #forgetRenewal(): void {
    delete this.#context.set.headers['set-cookie'];
    delete this.#context.set.headers['server-timing'];
  }

  /**
   * Ends the session here, whether or not the upstream hears of it: the refresh token yields no successor any more,
   * and the cookies are cleared.
   */
  async signOut(): Promise<void> {
    const { accessToken, refreshToken } = await this.#readTokens();
    const pairs: Pick<TokenPair, 'accessToken' | 'refreshToken'>[] = [];
    if (accessToken !== undefined && refreshToken !== undefined) pairs.push({ accessToken, refreshToken });
    const newest = refreshToken === undefined ? undefined : await this.#sharedRefresh.end(refreshToken);
    if (newest) pairs.push(newest);
    await withoutIdleTimeout(this.#context, this.#settings.timeouts.logoutMs, () =>
      Promise.allSettled(pairs.map((pair) => signOut(this.#settings, pair, traceOf(this.#context.request)))),
    );
    this.#cookies.clear(this.#context.set);
  }

  /** @throws GatewayError 502 when a token is too large for a cookie */
  async begin(pair: TokenPair): Promise<void> {
    await this.#sharedRefresh.begin(pair.refreshToken);
    await this.store(pair);
  }

  /** @throws GatewayError 502 when a token is too large for a cookie */
  store(pair: TokenPair): Promise<void> {
    return this.#cookies.store(this.#context.set, pair);
  }

  async #readTokens(): Promise<SessionTokens> {
    const { request, set } = this.#context;
    this.#tokens ??= await this.#cookies.read(request.headers.get('cookie'), set);
    return this.#tokens;
  }
}

function send(call: UpstreamCall, accessToken: string): Promise<UpstreamAnswer> {
  const headers = { accept: 'application/json', ...call.headers, authorization: `Bearer ${accessToken}` };
  return fetchUpstream({ ...call, headers });
}

export function createSessionPlugin(settings: Settings, sharedRefresh: SharedRefresh) {
  const cookies = new SessionCookies(settings);
  return new Elysia({ name: 'session' }).derive({ as: 'scoped' }, ({ request, server, set }) => ({
    session: new Session(settings, cookies, sharedRefresh, { request, server, set }),
  }));
}

export type SessionPlugin = ReturnType<typeof createSessionPlugin>;
