/** Bounds what the gateway admits: calls to other servers, and all the memory that others can make it hold. */

import { CALL_BYTES, ledgerBytes, READ_AHEAD_BYTES, STREAMED_BODY_BYTES } from '../../settings/memory.ts';
import { SHORT_CALLS } from '../../settings/process-limits.ts';
import type { Settings } from '../../settings/settings.ts';
import { Budget } from './budget.ts';
import { Permit } from './permit.ts';
import { RequestBodies } from './request-bodies.ts';
import { SessionLimit } from './session-limit.ts';

/** Whose body it is: how much of the ledger may be in use once it has been reserved, and how much of it by one session. */
const KINDS = {
  public: { share: 1 / 2, sessionShare: 1, isGeneration: false },
  signedIn: { share: 3 / 4, sessionShare: 1 / 4, isGeneration: false },
  // What it leaves is for calls, such as a refresh.
  generation: { share: 31 / 32, sessionShare: 1 / 16, isGeneration: true },
} as const;
/** How much of the streamed calls may be public. */
const PUBLIC_CALLS_SHARE = 3 / 4;

/**
 * What a call reserves for its response before it is sent. A response of which Bun has read ahead can still be refused,
 * but not one to a call that has changed something. A generation reserves nothing: it waits for minutes, and goes on
 * without its client when there is no memory.
 */
export const CALLS = {
  read: { kind: KINDS.signedIn, pool: 'reads', bodyBytes: 0 },
  generation: { kind: KINDS.generation, pool: 'streams', bodyBytes: 0 },
  head: { kind: KINDS.signedIn, pool: 'streams', bodyBytes: 0 },
  get: { kind: KINDS.signedIn, pool: 'streams', bodyBytes: READ_AHEAD_BYTES },
  change: { kind: KINDS.signedIn, pool: 'streams', bodyBytes: STREAMED_BODY_BYTES },
  public: { kind: KINDS.public, pool: 'streams', bodyBytes: READ_AHEAD_BYTES },
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
  readonly identityProvider = new Budget(SHORT_CALLS.identityProvider);
  readonly sessions = new Budget(SHORT_CALLS.sessions);
  /** Sign-outs have a pool of their own, because anybody can send them with made-up tokens. */
  readonly signOuts = new Budget(SHORT_CALLS.signOuts);
  readonly reads = new Budget(SHORT_CALLS.reads);
  readonly streams: Budget;
  readonly perSession: SessionLimit;
  readonly requestBodies: RequestBodies;
  readonly memoryLimitBytes: number;

  constructor(settings: Settings) {
    this.memoryLimitBytes = settings.memoryLimitBytes;
    this.ledger = new Budget(ledgerBytes(settings));
    this.streams = new Budget(settings.maxInFlightRequests);
    this.perSession = new SessionLimit(settings);
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
    const { isGeneration } = CALLS[kind].kind;
    const session = token === undefined ? undefined : this.perSession.join(token, isGeneration);
    return new Permit(this, pool, CALLS[kind].kind, session);
  }

  /**
   * Takes nothing: it refuses a request before its body is read.
   *
   * @throws GatewayError as {@link enter} does, and 503 when a generation could not be streamed now
   */
  refuseIfFull(kind: CallKind, token: string): void {
    const { isGeneration } = CALLS[kind].kind;
    this.perSession.refuseIfFull(token, isGeneration);
    this.#refuseUnlessFits(kind);
    if (isGeneration) this.ledger.refuseUnlessFits(CALL_BYTES + STREAMED_BODY_BYTES, KINDS.generation.share);
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
    this.ledger.refuseUnlessFits(CALL_BYTES, isPublic ? KINDS.public.share : 1);
    return pool;
  }
}
