/** The session of a request: calls the upstream with its access token, and refreshes at most once. */

import { Elysia } from 'elysia';
import type { Admission } from '../admission/admission.ts';
import { CALLS, type CallKind } from '../admission/calls.ts';
import type { Permit } from '../admission/permit.ts';
import type { SessionUse } from '../admission/session-limit.ts';
import { sessionHash } from '../crypto/session-hash.ts';
import { type Exchange, exchangeOf } from '../exchange/exchange.ts';
import { mayNeedNewToken } from '../http/bearer-challenge.ts';
import { GatewayError } from '../http/errors.ts';
import { VARY } from '../http/forwarded-headers.ts';
import { proxyErrorOf, proxyStatus } from '../http/proxy-status.ts';
import { systemClock } from '../refresh/clock.ts';
import type { RefreshCoordinator } from '../refresh/coordinator.ts';
import type { Settings } from '../settings/settings.ts';
import { Buffered } from '../upstream/body-modes.ts';
import { fetchUpstream, type UpstreamCall } from '../upstream/fetch-upstream.ts';
import type { TokenPair, Tokens } from '../upstream/token-pair.ts';
import type { UpstreamApi } from '../upstream/upstream-api.ts';
import { asDecoded, cancelBody, type UpstreamResponse } from '../upstream/upstream-response.ts';
import type { FoundTokens, SessionCookies } from './cookies.ts';

/** What the sessions of all requests share. */
export interface SessionParts {
  readonly settings: Settings;
  readonly api: UpstreamApi;
  readonly admission: Admission;
  readonly cookies: SessionCookies;
  readonly refreshCoordinator: RefreshCoordinator;
}

/** Bounds how often a download looks for the newest pair, because a fast one makes hundreds of calls. */
const NEWEST_FOR_MS = 1000;

/** For a 401 after which the session has been renewed. @see RFC 9209 section 2.1.5 */
const REPEAT_NOW = {
  'retry-after': '0',
  'proxy-status': 'music-gateway; received-status=401; details="the session was renewed: repeat the request"',
};

export class Session {
  readonly #parts: SessionParts;
  readonly #exchange: Exchange;
  readonly #arrivedAt = systemClock.now();
  #tokens: FoundTokens | undefined;
  /** The pair of this request's refresh. */
  #pair: TokenPair | undefined;
  /** Those of the last call after the head. The next one goes on from them, because facts about older tokens expire. */
  #newestTokens: Tokens | undefined;
  /** Until when they count as the newest. */
  #newestUntil = 0;

  /** Does no work: the cookies are read where they are needed. */
  constructor(parts: SessionParts, exchange: Exchange) {
    this.#parts = parts;
    this.#exchange = exchange;
  }

  /** Opens sealed cookies, before the tokens are read. Returns a promise only where cookies are sealed. */
  unseal(): Promise<void> | undefined {
    return this.#parts.cookies.areSealed ? this.#open() : undefined;
  }

  async #open(): Promise<void> {
    this.#tokens = this.#noted(await this.#parts.cookies.unseal(this.#exchange.request));
  }

  readTokens(): FoundTokens {
    // Otherwise sealed cookies would be sent as tokens.
    if (this.#parts.cookies.areSealed && !this.#tokens) throw new Error('unseal() comes first');
    this.#tokens ??= this.#noted(this.#parts.cookies.read(this.#exchange.request));
    return this.#tokens;
  }

  #noted(tokens: FoundTokens): FoundTokens {
    if (this.#parts.settings.logSession && tokens.refreshToken !== undefined)
      this.#exchange.record.session = sessionHash(tokens.refreshToken);
    return tokens;
  }

  /**
   * Clears cookies that nobody can open, and notes one that was sent twice. Only for a request that ends at once: a late
   * response could clear the cookies of a newer sign-in.
   */
  rejectCookies(): void {
    const { isAmbiguous, isUnreadable } = this.readTokens();
    if (isAmbiguous) this.#exchange.record.reason = 'sessionCookieTwice';
    if (isUnreadable) this.#parts.cookies.clear(this.#exchange.set);
  }

  /**
   * Refuses a request before its body is read. Reserves nothing, but may cut off readers that stand still.
   *
   * @returns what the session has in flight, for the body
   * @throws GatewayError 401 when there is no session cookie, or one of them was sent twice; 429 or 503 when there is no
   *   room for the call
   */
  checkRoom(kind: CallKind): SessionUse | undefined {
    return this.#parts.admission.checkRoom(kind, this.#token());
  }

  /**
   * Admits the request, until its exchange has ended.
   *
   * @throws GatewayError as {@link checkRoom} does
   */
  enter(kind: CallKind): Permit | Promise<Permit> {
    const headBytes = CALLS[kind].reservesHead ? headBytesOf(this.#exchange.request) : 0;
    return this.#parts.admission.enter(kind, this.#token(), this.#exchange, headBytes);
  }

  /**
   * Calls the upstream with the access token. After a 401 for the token, or without an access token, it refreshes once,
   * stores the new pair in the cookies and calls again. If the refresh cannot be made, it returns the first response.
   *
   * @throws GatewayError 401 without a session or when the upstream ends it, 502 when the upstream cannot be reached
   * @see RFC 6750 section 2.1
   */
  async fetch(call: UpstreamCall): Promise<UpstreamResponse> {
    this.#exchange.set.headers['vary'] = VARY.session;
    // A request refreshes once, however many calls it makes.
    if (this.#pair) return this.#sendRenewed(call, this.#pair);
    const { accessToken, refreshToken } = this.readTokens();
    if (refreshToken !== undefined) this.#parts.refreshCoordinator.presented.note(refreshToken);
    const first =
      accessToken === undefined ? undefined : await fetchUpstream(call, this.#exchange.record, accessToken);
    const unauthorized = first === undefined || mayNeedNewToken(first);
    if (unauthorized && refreshToken !== undefined) {
      const pair = await this.#renew(refreshToken, first);
      if (pair) return this.#sendRenewed(call, pair);
    }
    if (first) return first;
    throw new GatewayError(401, 'notSignedIn');
  }

  /**
   * Makes a call whose body can be sent only once. A call of `/v1/me` shows before whether the token works. If the
   * upstream refuses it all the same, it refreshes once, and the client has to repeat the request.
   *
   * @param checkMode how the response of the session check is read
   * @throws GatewayError as {@link fetch} does; 401 with {@link REPEAT_NOW} after that refresh
   */
  async fetchOnce(call: UpstreamCall, checkMode: Buffered): Promise<UpstreamResponse> {
    const check = await this.fetch(this.#parts.api.readCall('me', this.#exchange.request.signal, checkMode));
    if (check.status === 401) return asDecoded(check);
    if (this.#pair) return this.#sendRenewed(call, this.#pair);
    const { accessToken, refreshToken } = this.readTokens();
    const response = await fetchUpstream(call, this.#exchange.record, accessToken);
    if (!mayNeedNewToken(response) || refreshToken === undefined) return response;
    const pair = await this.#renew(refreshToken, response);
    if (pair) throw new GatewayError(401, 'uploadNotRepeated', { headers: REPEAT_NOW });
    return response;
  }

  /**
   * Makes a call after the head of the response has been sent: with the newest access token that is known, and without a
   * refresh, whose cookies could not be set.
   *
   * @throws GatewayError 401 when the session was signed out, 502 when the upstream cannot be reached
   */
  async fetchAfterHead(call: UpstreamCall): Promise<UpstreamResponse> {
    const known: FoundTokens | Tokens = this.#newestTokens ?? this.#pair ?? this.readTokens();
    const { accessToken = '', refreshToken } = known;
    if (refreshToken !== undefined && performance.now() > this.#newestUntil) {
      this.#newestTokens = await this.#newest({ accessToken, refreshToken });
      if (!this.#newestTokens) throw new GatewayError(401, 'sessionEnded');
      this.#newestUntil = performance.now() + NEWEST_FOR_MS;
    }
    return fetchUpstream(call, this.#exchange.record, this.#newestTokens?.accessToken ?? accessToken);
  }

  /** Fetches session check or models. A large response reserves memory until it is sent. */
  async fetchBuffered(name: 'me' | 'models'): Promise<UpstreamResponse> {
    const permit = await this.enter('read');
    // It is joined from its chunks, and copied again when the client reads slowly.
    const bodyMode = new Buffered((bytes) => permit.memory.reserveWhole(2 * bytes));
    return this.fetch(this.#parts.api.readCall(name, this.#exchange.request.signal, bodyMode));
  }

  /** The token by which the session is counted. */
  #token(): string {
    const { accessToken, refreshToken, isAmbiguous } = this.readTokens();
    const token = accessToken ?? refreshToken;
    if (token !== undefined) return token;
    this.rejectCookies();
    throw new GatewayError(401, isAmbiguous ? 'sessionCookieTwice' : 'notSignedIn');
  }

  /**
   * Refreshes, and stores the new pair in the cookies.
   *
   * @param first the response that has made it necessary, if there was one; discarded unless it counts
   * @returns undefined when the refresh could not be made, and the first response counts
   * @throws GatewayError 401 when the session is over, 502 when there is no first response that would count
   */
  async #renew(refreshToken: string, first: UpstreamResponse | undefined): Promise<TokenPair | undefined> {
    const { cookies, refreshCoordinator } = this.#parts;
    const { record, set } = this.#exchange;
    const { accessToken } = this.readTokens();
    const outcome = await refreshCoordinator.refresh(refreshToken, record, this.#arrivedAt, accessToken);
    if (first && outcome.kind !== 'unreachable') await cancelBody(first);
    switch (outcome.kind) {
      case 'renewed':
        this.#pair = outcome.pair;
        await storePair(this.#parts, this.#exchange, outcome.pair);
        this.#exchange.permit?.renewed(outcome.pair.accessToken);
        // Lets a page show that a refresh was made, because scripts cannot see the cookies.
        set.headers['server-timing'] = 'refresh';
        return outcome.pair;
      case 'rejected':
      case 'ended':
        if (outcome.clearsCookies ?? true) cookies.clear(set);
        throw new GatewayError(401, 'sessionEnded');
      case 'unreachable': {
        const { cause } = outcome;
        const headers = cause instanceof GatewayError ? cause.headers : proxyStatus(proxyErrorOf(cause));
        if (!first) throw new GatewayError(502, 'upstreamUnreachable', { cause, headers });
        // These headers keep a client from taking this 401 for the end of the session.
        Object.assign(set.headers, headers);
        return undefined;
      }
    }
  }

  /** Calls with the new pair, then stores the newest: another request may have refreshed during a long call. */
  async #sendRenewed(call: UpstreamCall, pair: TokenPair): Promise<UpstreamResponse> {
    const stop = this.#parts.refreshCoordinator.presented.expect(pair.refreshToken);
    try {
      return await fetchUpstream(call, this.#exchange.record, pair.accessToken);
    } finally {
      stop();
      await this.#storeNewest(pair);
    }
  }

  async #storeNewest(pair: TokenPair): Promise<void> {
    const newest = await this.#newest(pair);
    if (newest === pair) return;
    const { set, record } = this.#exchange;
    // An older pair must not be set, even when the newest one is too large for a cookie.
    delete set.headers['set-cookie'];
    record.sessionAfter = undefined;
    try {
      if (newest) await storePair(this.#parts, this.#exchange, newest);
    } catch (cause) {
      // This response may be paid for, so it is sent. The request that refreshed to the large pair has failed.
      if (!(cause instanceof GatewayError)) throw cause;
    }
    if (set.headers['set-cookie'] === undefined) delete set.headers['server-timing'];
  }

  #newest<Known extends Tokens>(pair: Known): Promise<Known | TokenPair | undefined> {
    const reused = this.#exchange.record.refreshTokenReused && this.#tokens?.refreshToken;
    return this.#parts.refreshCoordinator.newest(pair, reused);
  }
}

/**
 * Stores the pair in the cookies of the response.
 *
 * @throws GatewayError 502 when a token is too large for a cookie
 */
export async function storePair(
  { settings, cookies }: SessionParts,
  { set, record }: Exchange,
  pair: TokenPair,
): Promise<void> {
  await cookies.store(set, pair);
  if (settings.logSession) record.sessionAfter = sessionHash(pair.refreshToken);
}

/** The derive() that gives each handler its exchange and its session. */
export function createSessionPlugin(parts: SessionParts) {
  return new Elysia({ name: 'session' }).derive({ as: 'scoped' }, ({ request }) => {
    const exchange = exchangeOf(request);
    return { exchange, session: new Session(parts, exchange) };
  });
}

export type SessionPlugin = ReturnType<typeof createSessionPlugin>;

/** Bun keeps its own copy of a head, of up to 16 KB, until the response. */
function headBytesOf({ url, headers }: Request): number {
  let bytes = url.length;
  for (const [name, value] of headers) bytes += name.length + value.length;
  return bytes;
}
