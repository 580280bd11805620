/** Limits what one session has in flight, so that it cannot take what is there for all. */

import { tokenHash } from '../crypto/token-hash.ts';
import { GatewayError } from '../http/errors.ts';
import type { Settings } from '../settings/settings.ts';
import { RETRY_LATER } from './pool.ts';

/** What a session has in flight. */
export interface SessionUse {
  readonly key: bigint;
  calls: number;
  generations: number;
  /** What is reserved for its calls, with the bodies of requests and responses. */
  bytes: number;
}

type Limits = Pick<Settings, 'maxInFlightPerSession' | 'maxGenerationsPerSession'>;

/**
 * A session is counted by its access token, or by its refresh token when it has no other. One without anything in
 * flight is forgotten, so what is in flight bounds the memory.
 */
export class SessionLimit {
  readonly name = 'one_session';
  readonly #limits: Limits;
  readonly #sessions = new Map<bigint, SessionUse>();
  refused = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** The number of sessions with anything in flight. */
  get size(): number {
    return this.#sessions.size;
  }

  /**
   * Returns what the session has in flight.
   *
   * @throws GatewayError 429 when it has as many calls in flight as it may have
   */
  useOf(token: string, isGeneration: boolean): SessionUse {
    const key = tokenHash(token);
    const use = this.#sessions.get(key) ?? { key, calls: 0, generations: 0, bytes: 0 };
    // 0 means no limit.
    const most = this.#limits.maxInFlightPerSession || Number.POSITIVE_INFINITY;
    const mostGenerations = this.#limits.maxGenerationsPerSession || Number.POSITIVE_INFINITY;
    if (use.calls >= most || (isGeneration && use.generations >= mostGenerations)) throw this.refusal();
    return use;
  }

  /** Counts a call, or takes it out of the count. */
  count(use: SessionUse | undefined, isGeneration: boolean, by: 1 | -1): void {
    if (!use) return;
    use.calls += by;
    if (isGeneration) use.generations += by;
    this.#note(use);
  }

  /** @param bytes that it has more; less than 0 when it has less */
  charge(use: SessionUse | undefined, bytes: number): void {
    if (!use) return;
    use.bytes += bytes;
    this.#note(use);
  }

  /** Remembers the session while it has something in flight. */
  #note(use: SessionUse): void {
    if (use.calls > 0 || use.bytes > 0) this.#sessions.set(use.key, use);
    else if (this.#sessions.get(use.key) === use) this.#sessions.delete(use.key);
  }

  /** Counts a refusal, and returns its error. @see RFC 6585 section 4 */
  refusal(): GatewayError {
    this.refused++;
    return new GatewayError(429, 'sessionBusy', { pool: this.name, headers: RETRY_LATER });
  }
}
