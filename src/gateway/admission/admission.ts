/** Bounds what the gateway admits: calls to other servers, and all the memory that others can make it take. */

import { CODE_BYTES, ledgerBytes, processBytes } from '../settings/memory.ts';
import { SHORT_CALLS } from '../settings/process-limits.ts';
import type { Settings } from '../settings/settings.ts';
import { BodyWatch } from './body-watch.ts';
import { CALLS, type CallKind } from './calls.ts';
import { EndpointPrices } from './endpoint-prices.ts';
import { LADDER } from './ladder.ts';
import { Ledger } from './ledger.ts';
import { Permit } from './permit.ts';
import { Pool } from './pool.ts';
import { CALL_BYTES, KEEPS_UP_BYTES } from './prices.ts';
import { RequestBodies } from './request-bodies.ts';
import { SessionLimit, type SessionUse } from './session-limit.ts';

/** A collection takes some 40 ms. */
const COLLECT_EVERY_MS = 1000;
/** How many may wait for a place in a pool. */
const MOST_WAITING = 500;

interface PermitHolder {
  permit: Permit | undefined;
}

type ShortPool = Exclude<keyof typeof SHORT_CALLS, 'reads'>;

/**
 * One ledger has the memory of everything that is admitted. Each kind of call also has a pool, so that none takes what
 * another needs: a slow identity provider does not block session checks. A call stays in flight until its upstream has
 * finished or the gateway has given it up, even after its client has disconnected.
 */
export class Admission {
  readonly ledger: Ledger;
  readonly endpoints = new EndpointPrices();
  readonly identityProvider = new Pool('identity_provider', SHORT_CALLS.identityProvider, MOST_WAITING);
  readonly sessions = new Pool('session', SHORT_CALLS.sessions, MOST_WAITING);
  /** Sign-outs have a pool of their own, because anybody can send them with made-up tokens. */
  readonly signOuts = new Pool('sign_out', SHORT_CALLS.signOuts, MOST_WAITING);
  /** The ledger bounds how many wait. */
  readonly reads = new Pool('read', SHORT_CALLS.reads);
  readonly streams: Pool;
  readonly perSession: SessionLimit;
  readonly signInBodies: RequestBodies;
  readonly orderBodies: RequestBodies;
  /** They are kept until the upstream has responded, which may take minutes. */
  readonly relayedBodies: RequestBodies;
  readonly watch: BodyWatch;
  readonly memoryLimitBytes: number;
  #collectedAt = 0;
  /** Whether somebody has been refused, or has begun to wait, since the last tick. */
  #wasShort = false;

  /** @param readCharge returns what the kernel charges the process, in bytes */
  constructor(settings: Settings, readCharge: () => number = () => 0) {
    const idleBytes = processBytes(settings) - CODE_BYTES;
    this.memoryLimitBytes = settings.memoryLimitBytes;
    this.watch = new BodyWatch({
      onTick: () => this.#relieve(),
      needsTicks: () => this.ledger.someWait,
    });
    this.ledger = new Ledger(
      ledgerBytes(settings),
      () => readCharge() - idleBytes,
      () => this.#noteShort(),
    );
    this.streams = new Pool('stream', settings.maxInFlightRequests);
    this.perSession = new SessionLimit(settings);
    this.signInBodies = new RequestBodies('sign_in_body', this, LADDER.signInBody);
    this.orderBodies = new RequestBodies('order_body', this, LADDER.order);
    // An upload is refused first, so that calls which take little still begin. Its client can send it again.
    this.relayedBodies = new RequestBodies('relayed_body', this, LADDER.behind, LADDER.guest);
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
    const use = this.#refuseUnlessRoom(kind, token);
    const rules = CALLS[kind];
    holder.permit = new Permit(this, this[rules.pool], rules, use, headBytes);
    return holder.permit.takePlace();
  }

  /**
   * Reserves nothing, so that a request can be refused before its body is read.
   *
   * @returns what its session has in flight
   * @throws GatewayError as {@link enter} does
   */
  checkRoom(kind: CallKind, token: string | undefined): SessionUse | undefined {
    const { pool, poolShare } = CALLS[kind];
    if (!this[pool].hasPlace(poolShare)) throw this[pool].refusal();
    return this.#refuseUnlessRoom(kind, token);
  }

  /** First cuts off readers that stand still, though not for a guest. */
  #refuseUnlessRoom(kind: CallKind, token: string | undefined): SessionUse | undefined {
    const { isGeneration, rung } = CALLS[kind];
    const use = token === undefined ? undefined : this.perSession.useOf(token, isGeneration);
    const bytes = isGeneration ? CALL_BYTES + KEEPS_UP_BYTES : CALL_BYTES;
    if (this.ledger.fits(rung, bytes)) return use;
    if (use && this.watch.makeRoom(() => this.ledger.fits(rung, bytes))) return use;
    throw this.ledger.refusal();
  }

  /**
   * Makes a short call.
   *
   * @param name of its pool
   * @param patienceMs how long it may wait until there is room
   * @throws GatewayError 503 when there is no room for it
   */
  async shortCall<Result>(name: ShortPool, work: () => Promise<Result>, patienceMs = 0): Promise<Result> {
    const pool = this[name];
    const deadline = performance.now() + patienceMs;
    await this.ledger.reserve(LADDER.session, CALL_BYTES, patienceMs);
    try {
      await pool.take(deadline - performance.now());
      return await work().finally(() => pool.release());
    } finally {
      this.ledger.release(CALL_BYTES);
    }
  }

  /** Nobody is refused for garbage for long: the next tick collects it. */
  #noteShort(): void {
    this.#wasShort = true;
    this.watch.wake();
  }

  /** The kernel's charge may rise without a new call, and fall without a release. */
  #relieve(): void {
    const hasRoom = () => !this.ledger.isOvercharged(LADDER.behind);
    const isShort = !this.watch.makeRoom(hasRoom);
    const isDue = isShort || this.#wasShort || this.ledger.someWait || this.watch.someWait;
    this.#wasShort = false;
    const hasCollected = isDue && this.#collect();
    // Nobody is cut off for garbage.
    if (isShort && !hasCollected) this.watch.cutOffBehind(hasRoom);
    this.ledger.serveSoon();
  }

  /** What floods leave behind is garbage, of which Bun collects little while the machine has memory. */
  #collect(): boolean {
    const isDue = performance.now() - this.#collectedAt >= COLLECT_EVERY_MS;
    if (!isDue) return false;
    Bun.gc(true);
    this.#collectedAt = performance.now();
    return true;
  }
}
