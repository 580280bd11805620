/** Bounds what the gateway admits: calls to other servers, and all the memory that others can make it hold. */

import { CALL_BYTES, ledgerBytes, READ_AHEAD_BYTES, STREAMED_BODY_BYTES } from '../../settings/memory.ts';
import { SHORT_CALLS } from '../../settings/process-limits.ts';
import type { Settings } from '../../settings/settings.ts';
import { Budget } from './budget.ts';
import { Permit } from './permit.ts';
import { RequestBodies } from './request-bodies.ts';
import { SessionLimit } from './session-limit.ts';

/** How much of the ledger may be in use after a body has been reserved. The rest is for calls, such as a refresh. */
const SHARE = { public: 1 / 2, signedIn: 3 / 4, generation: 15 / 16 } as const;
/** How much of the streamed calls may be public. */
const PUBLIC_CALLS_SHARE = 3 / 4;
/** How much of the ledger one session may use for response bodies, except those of generations. */
const SESSION_SHARE = 1 / 4;

/**
 * What a call reserves for its response before it is sent. A response of which Bun has read ahead can still be refused,
 * but not one to a call that has changed something. A generation reserves nothing: it waits for minutes, and goes on
 * without its client when there is no memory.
 */
export const CALLS = {
  read: { pool: 'reads', share: SHARE.signedIn, isGeneration: false, bodyBytes: 0 },
  generation: { pool: 'streams', share: SHARE.generation, isGeneration: true, bodyBytes: 0 },
  head: { pool: 'streams', share: SHARE.signedIn, isGeneration: false, bodyBytes: 0 },
  get: { pool: 'streams', share: SHARE.signedIn, isGeneration: false, bodyBytes: READ_AHEAD_BYTES },
  change: { pool: 'streams', share: SHARE.signedIn, isGeneration: false, bodyBytes: STREAMED_BODY_BYTES },
  public: { pool: 'streams', share: SHARE.public, isGeneration: false, bodyBytes: READ_AHEAD_BYTES },
} as const;

export type CallKind = keyof typeof CALLS;
type ShortCall = Exclude<keyof typeof SHORT_CALLS, 'reads'>;

/**
 * One ledger has the memory of everything that is admitted. Each kind of call also has a pool, so that none takes the
 * places of another: a slow identity provider does not block session checks. A call stays in flight until its upstream
 * has finished or the gateway has given it up, even after its client has disconnected.
 */
export class Admission {
  readonly ledger: Budget;
  /** Token exchanges at the identity provider. */
  readonly identityProvider = new Budget(SHORT_CALLS.identityProvider);
  /** Sign-in and refresh at the upstream. */
  readonly sessions = new Budget(SHORT_CALLS.sessions);
  /** Sign-outs have a pool of their own, because anybody can send them with made-up tokens. */
  readonly signOuts = new Budget(SHORT_CALLS.signOuts);
  /** Session check and models. */
  readonly reads = new Budget(SHORT_CALLS.reads);
  /** Generations and proxied calls, until their bodies have ended. */
  readonly streams: Budget;
  readonly perSession: SessionLimit;
  readonly requestBodies: RequestBodies;
  readonly memoryLimitBytes: number;

  constructor(settings: Settings) {
    this.memoryLimitBytes = settings.memoryLimitBytes;
    this.ledger = new Budget(ledgerBytes(settings));
    this.streams = new Budget(settings.maxInFlightRequests);
    this.perSession = new SessionLimit({
      calls: settings.maxInFlightPerSession,
      generations: settings.maxGenerationsPerSession,
      bytes: this.ledger.limit * SESSION_SHARE,
    });
    this.requestBodies = new RequestBodies(this.ledger);
  }

  /**
   * Admits a call without its response body.
   *
   * @param token identifies the session; undefined for public playback
   * @throws GatewayError 429 or 503 when there is no place for it
   */
  enter(kind: CallKind, token: string | undefined): Permit {
    const pool = this.#refuseUnlessFits(kind);
    const { isGeneration } = CALLS[kind];
    const session = token === undefined ? undefined : this.perSession.join(token, isGeneration);
    return new Permit(this, pool, CALLS[kind], session);
  }

  /**
   * Takes nothing: it refuses a request before its body is read.
   *
   * @throws GatewayError as {@link enter} does, and 503 when a generation could not be streamed now
   */
  refuseIfFull(kind: CallKind, token: string): void {
    const { isGeneration } = CALLS[kind];
    this.perSession.refuseIfFull(token, isGeneration);
    this.#refuseUnlessFits(kind);
    if (isGeneration) this.ledger.refuseUnlessFits(CALL_BYTES + STREAMED_BODY_BYTES, SHARE.generation);
  }

  /**
   * Makes a short call.
   *
   * @param patienceMs how long it may wait for a place
   * @throws GatewayError 503 when there is no place for it
   */
  async during<Result>(kind: ShortCall, work: () => Promise<Result>, patienceMs = 0): Promise<Result> {
    const pool = this[kind];
    const deadline = performance.now() + patienceMs;
    const hasMemory = await this.ledger.succeeds(() => this.ledger.tryReserve(CALL_BYTES), patienceMs);
    if (!hasMemory) throw this.ledger.refusal();
    try {
      const leftMs = patienceMs && deadline - performance.now();
      if (!(await pool.succeeds(() => pool.tryReserve(1), leftMs))) throw pool.refusal();
      return await work().finally(() => pool.release(1));
    } finally {
      this.ledger.release(CALL_BYTES);
    }
  }

  /** Strangers make no more calls when half of the memory is in use; all others may use the whole. */
  #refuseUnlessFits(kind: CallKind): Budget {
    const pool = this[CALLS[kind].pool];
    const isPublic = kind === 'public';
    pool.refuseUnlessFits(1, isPublic ? PUBLIC_CALLS_SHARE : 1);
    this.ledger.refuseUnlessFits(CALL_BYTES, isPublic ? SHARE.public : 1);
    return pool;
  }
}
