/** Bounds what the gateway admits: calls to other servers, and all the memory that others can make it take. */

import { CALL_BYTES, ledgerBytes, STREAMED_BODY_BYTES } from '../../settings/memory.ts';
import { SHORT_CALLS } from '../../settings/process-limits.ts';
import type { Settings } from '../../settings/settings.ts';
import { Budget } from './budget.ts';
import { CALLS, type CallKind } from './call-rules.ts';
import { Permit } from './permit.ts';
import { RequestBodies } from './request-bodies.ts';
import { SessionLimit } from './session-limit.ts';

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
