/** Describes every call to the upstream API, and makes sign-in, refresh and sign-out itself. */

import type { Admission } from '../admission/admission.ts';
import { GatewayError } from '../http/errors.ts';
import { isOutage, proxyStatus } from '../http/proxy-status.ts';
import type { CallName, RequestRecord } from '../record/request-record.ts';
import type { Settings } from '../settings/settings.ts';
import { type BodyMode, Buffered } from './body-modes.ts';
import { type AuthorizationGrant, exchangeCode } from './exchange-code.ts';
import { fetchUpstream, type UpstreamCall } from './fetch-upstream.ts';
import { readTokenPair, type TokenPair, type Tokens } from './token-pair.ts';
import type { UpstreamResponse } from './upstream-response.ts';

/** What the upstream has said of a refresh token. `unreachable`: nothing that decides whether it is still good. */
export type RefreshVerdict =
  | { readonly kind: 'renewed'; readonly pair: TokenPair }
  | { readonly kind: 'rejected' }
  | { readonly kind: 'unreachable'; readonly cause: unknown };

/** A call for which the caller says how its body is read. */
export type UnreadCall = Omit<UpstreamCall, 'bodyMode'>;

export class UpstreamApi {
  readonly #settings: Settings;
  readonly #admission: Admission;

  constructor(settings: Settings, admission: Admission) {
    this.#settings = settings;
    this.#admission = admission;
  }

  /**
   * Exchanges the code at the identity provider, and its identity token for a pair at the upstream.
   *
   * @throws GatewayError with the error status of either server, 401 or 502 when one of them returns no valid tokens,
   *   502 when it cannot be reached, 503 when there is no room for the calls
   */
  async signIn(grant: AuthorizationGrant, record: RequestRecord): Promise<TokenPair> {
    const { signInMs } = this.#settings.timeouts;
    // Room for both calls is reserved first, because the code works only once.
    const response = await this.#admission.shortCall('sessions', async () => {
      const identityAccessToken = await this.#admission.shortCall('identityProvider', () =>
        exchangeCode(this.#settings.identityProvider, signInMs, grant, record),
      );
      const body = { [this.#settings.upstreamSignInField]: identityAccessToken };
      return this.#post('sign-in', '/v1/auth/idp', signInMs, body, record);
    });
    const { pair, problem } = readTokenPair(response);
    if (pair) return pair;
    record.tokenProblem = problem;
    throw new GatewayError(response.status >= 400 ? response.status : 502, 'signInFailed');
  }

  /**
   * @param kind the pool that it takes a place in. Strangers can invent sign-outs, which must not fill that of sessions.
   * @see RFC 6749 section 6, with the upstream's own JSON body
   */
  async refresh(
    refreshToken: string,
    record: RequestRecord,
    kind: 'sessions' | 'signOuts' = 'sessions',
  ): Promise<RefreshVerdict> {
    try {
      const { signInMs, logoutMs } = this.#settings.timeouts;
      const body = { refresh_token: refreshToken };
      const response = await this.#admission.shortCall(
        kind,
        () => this.#post('refresh', '/v1/auth/refresh', signInMs, body, record),
        kind === 'signOuts' ? logoutMs : 0,
      );
      const { pair, problem } = readTokenPair(response);
      if (pair) return { kind: 'renewed', pair };
      record.tokenProblem ??= problem;
      const isKept = this.#settings.refreshOutage === 'keep' && isOutage(response.status);
      if (!isKept) return { kind: 'rejected' };
      const headers = proxyStatus('destination_unavailable');
      return { kind: 'unreachable', cause: new GatewayError(502, 'upstreamUnreachable', { headers }) };
    } catch (cause) {
      return { kind: 'unreachable', cause };
    }
  }

  /**
   * Waits until there is room. The wait and the call together take as long as a sign-out may.
   *
   * @returns the upstream's status
   * @throws GatewayError 502 when the upstream cannot be reached, 503 when there is no room for the call
   */
  async signOut({ accessToken, refreshToken }: Tokens, record: RequestRecord): Promise<number> {
    const { logoutMs } = this.#settings.timeouts;
    const deadline = performance.now() + logoutMs;
    const body = { refresh_token: refreshToken };
    const send = () => {
      const leftMs = Math.max(1, deadline - performance.now());
      return this.#post('sign-out', '/v1/auth/logout', leftMs, body, record, accessToken);
    };
    const { status } = await this.#admission.shortCall('signOuts', send, logoutMs);
    return status;
  }

  /** Session check and models. */
  readCall(name: 'me' | 'models', signal: AbortSignal, bodyMode: BodyMode): UpstreamCall {
    const { upstreamUrl, timeouts } = this.#settings;
    const url = `${upstreamUrl}/v1/${name}`;
    return { name, method: 'GET', url, headers: {}, timeoutMs: timeouts.readMs, signal, bodyMode };
  }

  /** Has no signal: a generation is paid for, so it continues when the client disconnects. */
  generationCall(order: object, idempotencyKey: string | null): UnreadCall {
    return {
      name: 'music',
      method: 'POST',
      url: `${this.#settings.upstreamUrl}/v1/music`,
      headers: {
        'content-type': 'application/json',
        // Players expect unencoded audio. If the upstream encodes it anyway, it keeps its Content-Encoding.
        'accept-encoding': 'identity',
        ...(idempotencyKey === null ? {} : { 'idempotency-key': idempotencyKey }),
      },
      body: JSON.stringify(order),
      timeoutMs: this.#settings.timeouts.streamMs,
      texts: { late: 'generationTimeout' },
    };
  }

  relayedCall(request: Omit<UpstreamCall, 'timeoutMs'>): UpstreamCall {
    return { ...request, timeoutMs: this.#settings.timeouts.streamMs };
  }

  #post(
    name: CallName,
    path: string,
    timeoutMs: number,
    fields: Readonly<Record<string, string>>,
    record: RequestRecord,
    accessToken?: string,
  ): Promise<UpstreamResponse> {
    const headers = { accept: 'application/json', 'content-type': 'application/json' };
    const body = JSON.stringify(fields);
    const url = this.#settings.upstreamUrl + path;
    const call = { name, method: 'POST', url, headers, body, timeoutMs, bodyMode: new Buffered() };
    return fetchUpstream(call, record, accessToken);
  }
}
