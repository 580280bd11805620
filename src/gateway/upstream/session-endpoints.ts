/** Calls the upstream's endpoints for sign-in, refresh and sign-out. */

import type { Admission } from '../http/admission/admission.ts';
import type { Pool } from '../http/admission/pool.ts';
import { GatewayError } from '../http/errors.ts';
import { messages } from '../http/messages.ts';
import { isOutage, proxyStatus } from '../http/proxy-status.ts';
import type { Settings } from '../settings/settings.ts';
import type { RequestTrace } from '../trace/request-trace.ts';
import { fetchUpstream, type UpstreamCall } from './fetch-upstream.ts';
import { readTokenPair, type TokenPair } from './token-pair.ts';
import type { UpstreamResponse } from './upstream-response.ts';

/** The outcome of a refresh: a new pair, the upstream's refusal, no verdict, or an earlier sign-out. */
export type RefreshOutcome =
  | { readonly kind: 'renewed'; readonly pair: TokenPair }
  | { readonly kind: 'rejected' }
  | { readonly kind: 'unreachable'; readonly cause: unknown }
  /** Requests that arrive at or after `clearsFrom`, in milliseconds since the epoch, get their cookies cleared. */
  | { readonly kind: 'ended'; readonly clearsFrom: number };

/** Except for sign-in, a call is not made when its pool is full. */
export class SessionEndpoints {
  readonly #settings: Settings;
  readonly #sessions: Pool;
  readonly #signOuts: Pool;

  constructor(settings: Settings, { sessions, signOuts }: Pick<Admission, 'sessions' | 'signOuts'>) {
    this.#settings = settings;
    this.#sessions = sessions;
    this.#signOuts = signOuts;
  }

  /**
   * Always gets a place, because the authorization code is already spent.
   *
   * @throws GatewayError with the upstream's error status, 502 when it returns no valid pair or cannot be reached
   */
  async signIn(identityAccessToken: string, trace: RequestTrace): Promise<TokenPair> {
    const body = { [this.#settings.upstreamSignInField]: identityAccessToken };
    const timeoutMs = this.#settings.timeouts.signInMs;
    const response = await this.#sessions.duringEvenIfFull(() =>
      this.#post('/v1/auth/idp', body, { name: 'sign-in', trace, timeoutMs }),
    );
    const pair = readTokenPair(response);
    if (pair) return pair;
    throw new GatewayError(response.status >= 400 ? response.status : 502, messages.signInFailed);
  }

  /** @see RFC 6749 section 6, with the upstream's own JSON body */
  async refresh(refreshToken: string, trace: RequestTrace): Promise<RefreshOutcome> {
    try {
      const body = { refresh_token: refreshToken };
      const timeoutMs = this.#settings.timeouts.signInMs;
      const response = await this.#sessions.during(() =>
        this.#post('/v1/auth/refresh', body, { name: 'refresh', trace, timeoutMs }),
      );
      const pair = readTokenPair(response);
      if (pair) return { kind: 'renewed', pair };
      const isKept = this.#settings.refreshOutage === 'keep' && isOutage(response.status);
      return isKept ? { kind: 'unreachable', cause: outage() } : { kind: 'rejected' };
    } catch (cause) {
      return { kind: 'unreachable', cause };
    }
  }

  /**
   * @returns the upstream's status
   * @throws GatewayError 502 when the upstream cannot be reached, 503 when there is no place for the call
   */
  async signOut(
    { accessToken, refreshToken }: Pick<TokenPair, 'accessToken' | 'refreshToken'>,
    trace: RequestTrace,
  ): Promise<number> {
    const body = { refresh_token: refreshToken };
    const headers = { authorization: `Bearer ${accessToken}` };
    const timeoutMs = this.#settings.timeouts.logoutMs;
    const { status } = await this.#signOuts.during(() =>
      this.#post('/v1/auth/logout', body, { name: 'sign-out', trace, timeoutMs, headers }),
    );
    return status;
  }

  #post(
    path: string,
    body: Readonly<Record<string, string>>,
    {
      headers,
      ...call
    }: Pick<UpstreamCall, 'name' | 'trace' | 'timeoutMs'> & Partial<Pick<UpstreamCall, 'headers'>>,
  ): Promise<UpstreamResponse> {
    return fetchUpstream({
      ...call,
      method: 'POST',
      url: this.#settings.upstreamUrl + path,
      headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      bodyMode: 'buffered',
    });
  }
}

function outage(): GatewayError {
  const headers = proxyStatus('destination_unavailable');
  return new GatewayError(502, messages.upstreamUnreachable, { headers });
}
