/** Bounds what the gateway admits: calls to other servers, and all the memory that others can make it take. */

import { CALL_BYTES, CODE_BYTES, ledgerBytes, processBytes, STREAM_BASE_BYTES } from '../settings/memory.ts';
import { SHORT_CALLS } from '../settings/process-limits.ts';
import type { Settings } from '../settings/settings.ts';
import { BodyWatch } from './body-watch.ts';
import { Budget } from './budget.ts';
import { CALLS, type CallKind } from './call-rules.ts';
import { Ledger } from './ledger.ts';
import { Permit } from './permit.ts';
import { READ_HERE, RELAYED, RequestBodies } from './request-bodies.ts';
import { SessionLimit, type SessionUse } from './session-limit.ts';

/** A collection takes some 40 ms. */
const COLLECT_EVERY_MS = 1000;

interface PermitHolder {
  permit: Permit | undefined;
}

type ShortCall = Exclude<keyof typeof SHORT_CALLS, 'reads'>;

/**
 * One ledger has the memory of everything that is admitted. Each kind of call also has a pool, so that none takes what
 * another needs: a slow identity provider does not block session checks. A call stays in flight until its upstream has
 * finished or the gateway has given it up, even after its client has disconnected.
 */
export class Admission {
  readonly ledger: Ledger;
  readonly identityProvider = new Budget(SHORT_CALLS.identityProvider);
  readonly sessions = new Budget(SHORT_CALLS.sessions);
  /** Sign-outs have a pool of their own, because anybody can send them with made-up tokens. */
  readonly signOuts = new Budget(SHORT_CALLS.signOuts);
  /** The ledger bounds how many wait. */
  readonly reads = new Budget(SHORT_CALLS.reads, Number.POSITIVE_INFINITY);
  readonly streams: Budget;
  readonly perSession: SessionLimit;
  readonly requestBodies: RequestBodies;
  /** Apart, because one of them may stay for minutes, and would keep every sign-in and generation out. */
  readonly relayedBodies: RequestBodies;
  readonly bodies: BodyWatch;
  readonly memoryLimitBytes: number;
  #collectedAt = 0;

  /** @param readCharge returns what the kernel charges the process, in bytes */
  constructor(settings: Settings, readCharge: () => number = () => 0) {
    const idleBytes = processBytes(settings) - CODE_BYTES;
    this.memoryLimitBytes = settings.memoryLimitBytes;
    this.ledger = new Ledger(ledgerBytes(settings), () => readCharge() - idleBytes);
    this.streams = new Budget(settings.maxInFlightRequests);
    this.perSession = new SessionLimit(settings);
    this.requestBodies = new RequestBodies(this.ledger, READ_HERE);
    this.relayedBodies = new RequestBodies(this.ledger, RELAYED);
    this.bodies = new BodyWatch((someWait) => this.#relieve(someWait));
  }

  /**
   * Admits a call without its response body.
   *
   * @param token identifies the session; undefined for public playback
   * @param holder gets the permit, and has to release it, also when the call is refused
   * @param headBytes what the request's head takes beside {@link CALL_BYTES}
   * @returns a promise only when the call has to wait for a place, or gets none
   * @throws GatewayError 429 when the session has as much in flight as it may, 503 when there is no room for the call or
   *   for the audio of a generation
   */
  enter(
    kind: CallKind,
    token: string | undefined,
    holder: PermitHolder,
    headBytes = 0,
  ): Permit | Promise<Permit> {
    const session = this.#refuseUnlessRoom(kind, token);
    const rules = CALLS[kind];
    holder.permit = new Permit(this, this[rules.pool], rules, session, headBytes);
    return holder.permit.takePlace();
  }

  /**
   * Reserves nothing, so that a request can be refused before its body is read.
   *
   * @throws GatewayError as {@link enter} does
   */
  refuseIfFull(kind: CallKind, token: string | undefined): void {
    const { pool, poolShare } = CALLS[kind];
    this[pool].refuseUnlessFits(1, poolShare);
    this.#refuseUnlessRoom(kind, token);
  }

  /** For a generation, first cuts off readers that stand still. */
  #refuseUnlessRoom(kind: CallKind, token: string | undefined): SessionUse | undefined {
    const { isGeneration, callShare } = CALLS[kind];
    const session = token === undefined ? undefined : this.perSession.useOf(token, isGeneration);
    if (isGeneration) this.#makeRoomForGeneration();
    else this.ledger.refuseUnlessFits(CALL_BYTES, callShare);
    return session;
  }

  #makeRoomForGeneration(): void {
    const { callShare } = CALLS.generation;
    const hasRoom = () => this.ledger.fits(CALL_BYTES + STREAM_BASE_BYTES, callShare);
    if (!this.bodies.makeRoom(hasRoom)) throw this.ledger.refusal();
  }

  /**
   * Makes a short call.
   *
   * @param patienceMs how long it may wait until there is room
   * @throws GatewayError 503 when there is no room for it
   */
  async shortCall<Result>(kind: ShortCall, work: () => Promise<Result>, patienceMs = 0): Promise<Result> {
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

  /** The kernel's charge may rise without a new call, and fall without a release. */
  #relieve(someWait: boolean): void {
    const { share } = CALLS.generation;
    const hasRoom = this.bodies.makeRoom(() => this.ledger.fitsCharged(0, share));
    if ((someWait || !hasRoom) && performance.now() - this.#collectedAt >= COLLECT_EVERY_MS) {
      // What floods leave behind is garbage, of which Bun collects little while the machine has memory.
      Bun.gc(true);
      this.#collectedAt = performance.now();
    }
    this.ledger.serveWaiting();
  }
}
