/** Limits what one session has in flight, so that it cannot take what is there for all. */

import type { Settings } from '../../settings/settings.ts';
import { GatewayError } from '../errors.ts';
import { RETRY_LATER } from './budget.ts';
import { tokenHash } from './token-hash.ts';

/** A call, as it counts for its session. */
export interface CountedCall {
  readonly isGeneration: boolean;
  /** What it has reserved for the body of its response. */
  readonly bodyBytes: number;
}

/** A session with calls in flight. */
export interface CountedSession {
  readonly key: bigint;
  calls: number;
  generations: number;
  /** Of its response bodies. */
  bytes: number;
}

type Limits = Pick<Settings, 'maxInFlightPerSession' | 'maxGenerationsPerSession'>;

/**
 * A session is counted by its access token, or by its refresh token when it has no other. The calls in flight bound the
 * memory, because only their sessions are remembered.
 */
export class SessionLimit {
  readonly #limits: Limits;
  readonly #sessions = new Map<bigint, CountedSession>();
  refused = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** The number of sessions with calls in flight. */
  get size(): number {
    return this.#sessions.size;
  }

  /** @throws GatewayError 429 when the session has as many calls in flight as it may have */
  refuseIfFull(token: string, isGeneration: boolean): void {
    const session = this.#sessions.get(tokenHash(token));
    if (!session) return;
    // 0 means no limit.
    const most = this.#limits.maxInFlightPerSession || Number.POSITIVE_INFINITY;
    const mostGenerations = this.#limits.maxGenerationsPerSession || Number.POSITIVE_INFINITY;
    const isFull = session.calls >= most || (isGeneration && session.generations >= mostGenerations);
    if (isFull) throw this.refusal();
  }

  /** Counts one more call of the session, even beyond its limits. */
  join(token: string, call: CountedCall): CountedSession {
    const key = tokenHash(token);
    const session = this.#sessions.get(key) ?? { key, calls: 0, generations: 0, bytes: 0 };
    this.#sessions.set(key, session);
    session.calls++;
    if (call.isGeneration) session.generations++;
    session.bytes += call.bodyBytes;
    return session;
  }

  /** Counts a call for the token that its session was renewed with. @throws GatewayError as {@link refuseIfFull} does */
  move(session: CountedSession, token: string, call: CountedCall): CountedSession {
    if (tokenHash(token) === session.key) return session;
    this.refuseIfFull(token, call.isGeneration);
    this.leave(session, call);
    return this.join(token, call);
  }

  leave(session: CountedSession, call: CountedCall): void {
    session.calls--;
    if (call.isGeneration) session.generations--;
    session.bytes -= call.bodyBytes;
    if (session.calls === 0) this.#sessions.delete(session.key);
  }

  /** Counts a refusal, and returns its error. @see RFC 6585 section 4 */
  refusal(): GatewayError {
    this.refused++;
    return new GatewayError(429, 'sessionBusy', { headers: RETRY_LATER });
  }
}
