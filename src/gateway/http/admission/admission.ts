/** Bounds what the gateway admits: calls to other servers, and all the memory that others can make it take. */

import { CALL_BYTES, ledgerBytes, READ_AHEAD_BYTES, STREAMED_BODY_BYTES } from '../../settings/memory.ts';
import { SHORT_CALLS } from '../../settings/process-limits.ts';
import type { Settings } from '../../settings/settings.ts';
import { Budget } from './budget.ts';
import { Permit } from './permit.ts';
import { RequestBodies } from './request-bodies.ts';
import { SessionLimit } from './session-limit.ts';

const SIGNED_IN = {
  pool: 'streams',
  /** How much of the pool, and of the ledger, may be in use when a call is admitted. */
  poolShare: 1,
  callShare: 1,
  /** How much of the ledger may be in use when a body is reserved, and how much of it by one session. */
  share: 3 / 4,
  sessionShare: 1 / 4,
  isGeneration: false,
  /** How much of the response can arrive before the gateway knows its head. */
  headBytes: 0,
} as const;

/**
 * The kinds of calls. A response of which Bun has read ahead can still be refused, but not one to a call that has changed
 * something. A generation reserves nothing for its head: it waits for minutes, and continues without its client when
 * there is no memory.
 */
const CALLS = {
  read: { ...SIGNED_IN, pool: 'reads' },
  // The last 32nd is left for calls, such as a refresh.
  generation: { ...SIGNED_IN, share: 31 / 32, sessionShare: 1 / 16, isGeneration: true },
  head: SIGNED_IN,
  get: { ...SIGNED_IN, headBytes: READ_AHEAD_BYTES },
  change: { ...SIGNED_IN, headBytes: STREAMED_BODY_BYTES },
  // Strangers have no session, so they are refused first.
  public: {
    pool: 'streams',
    poolShare: 3 / 4,
    callShare: 1 / 2,
    share: 1 / 2,
    sessionShare: 1,
    isGeneration: false,
    headBytes: READ_AHEAD_BYTES,
  },
} as const;

export type CallKind = keyof typeof CALLS;
export type CallRules = (typeof CALLS)[CallKind];
type ShortCall = Exclude<keyof typeof SHORT_CALLS, 'reads'>;

/**
 * One ledger has the memory of everything that is admitted. Each kind of call also has a pool, so that none takes what
 * another needs: a slow identity provider does not block session checks. A call stays in flight until its upstream has
 * finished or the gateway has given it up, even after its client has disconnected.
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
   * @throws GatewayError as {@link refuseIfFull} does
   */
  enter(kind: CallKind, token: string | undefined): Permit {
    this.refuseIfFull(kind, token);
    return new Permit(this, CALLS[kind], token);
  }

  /**
   * Takes nothing, so that a request can be refused before its body is read.
   *
   * @throws GatewayError 429 when the session has as much in flight as it may, 503 when there is no room for the call or
   *   for the audio of a generation
   */
  refuseIfFull(kind: CallKind, token: string | undefined): void {
    const { pool, poolShare, callShare, share, isGeneration } = CALLS[kind];
    if (token !== undefined) this.perSession.refuseIfFull(token, isGeneration);
    this[pool].refuseUnlessFits(1, poolShare);
    if (isGeneration) this.ledger.refuseUnlessFits(CALL_BYTES + STREAMED_BODY_BYTES, share);
    else this.ledger.refuseUnlessFits(CALL_BYTES, callShare);
  }

  /**
   * Makes a short call.
   *
   * @param patienceMs how long it may wait until there is room
   * @throws GatewayError 503 when there is no room for it
   */
  async during<Result>(kind: ShortCall, work: () => Promise<Result>, patienceMs = 0): Promise<Result> {
    const pool = this[kind];
    const deadline = performance.now() + patienceMs;
    await this.ledger.reserve(CALL_BYTES, patienceMs);
    try {
      await pool.reserve(1, deadline - performance.now());
      return await work().finally(() => pool.release(1));
    } finally {
      this.ledger.release(CALL_BYTES);
    }
  }
}
