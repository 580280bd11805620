/** Bounds what the gateway admits: calls to other servers, request bodies and streamed response bodies. */

import {
  PUBLIC_DETAILS_LIMIT,
  processBytes,
  requestBodyBudgetBytes,
  SHORT_CALL_LIMITS,
  STREAMED_BODY_BYTES,
  WAITING_CALL_BYTES,
} from '../../settings/memory.ts';
import type { Settings } from '../../settings/settings.ts';
import { BodyBudget } from './body-budget.ts';
import { Pool } from './pool.ts';
import { SessionLimit, type SessionPlace, type SessionTokens } from './session-limit.ts';

/**
 * A kind of body is admitted while less than this share of {@link Admission.streamedBodies} is in use. Anonymous
 * requests have the smallest share, so that they never take a place from a user, and other bodies never use up the
 * places of paid generations.
 */
export const STREAMED_SHARE = {
  /** Public playback. */
  public: 1 / 2,
  /** Responses that are relayed to a signed-in user. */
  proxied: 3 / 4,
  generation: 1,
} as const;

/** The share that one session may use, so that a few sessions cannot use up the places of generations. */
const SESSION_SHARE = 1 / 4;
const MIN_STREAMED_PER_SESSION = 4;

/** The share of {@link Admission.streams} that anonymous requests may use. */
export const PUBLIC_SHARE_OF_STREAMS = 3 / 4;

/**
 * Each kind of call has a pool of its own, so that none takes the places of another: a slow identity provider does not
 * block session checks, and waiting generations do not block refreshes. A call stays in flight until its upstream has
 * finished or the gateway has given it up, even after its client has disconnected: `server.pendingRequests` stops
 * counting it then.
 */
export class Admission {
  /** Token exchanges at the identity provider. */
  readonly identityProvider = new Pool(SHORT_CALL_LIMITS.identityProvider);
  /** Sign-in and refresh at the upstream. */
  readonly sessions = new Pool(SHORT_CALL_LIMITS.sessions);
  /** Sign-outs have a pool of their own, because anybody can send them with made-up tokens. */
  readonly signOuts = new Pool(SHORT_CALL_LIMITS.signOuts);
  /** Session check and models. */
  readonly reads = new Pool(SHORT_CALL_LIMITS.reads);
  /** Public track details, until the response has been sent. Public audio counts as a streamed body. */
  readonly publicDetails = new Pool(PUBLIC_DETAILS_LIMIT);
  /** Generations and proxied calls, until their bodies have ended. */
  readonly streams: Pool;
  /** Streamed response bodies: each costs megabytes, unlike a call that waits for its response. */
  readonly streamedBodies: Pool;
  readonly perSession: SessionLimit;
  readonly requestBodies: BodyBudget;
  readonly memoryLimitBytes: number;
  readonly #processBytes: number;

  constructor({
    maxInFlightRequests,
    maxInFlightPerSession,
    maxStreamedBodies,
    memoryLimitBytes,
    traces,
  }: Pick<
    Settings,
    'maxInFlightRequests' | 'maxInFlightPerSession' | 'maxStreamedBodies' | 'memoryLimitBytes' | 'traces'
  >) {
    this.#processBytes = processBytes(traces);
    this.streams = new Pool(maxInFlightRequests);
    this.streamedBodies = new Pool(maxStreamedBodies);
    this.perSession = new SessionLimit(
      maxInFlightPerSession,
      Math.max(MIN_STREAMED_PER_SESSION, Math.floor(maxStreamedBodies * SESSION_SHARE)),
    );
    this.memoryLimitBytes = memoryLimitBytes;
    this.requestBodies = new BodyBudget(requestBodyBudgetBytes(memoryLimitBytes));
  }

  /** @throws GatewayError 429 or 503 when there is no place for a call of the session */
  enter(pool: Pool, tokens: SessionTokens): SessionPlace {
    pool.refuseIfFull();
    const place = this.perSession.enter(tokens);
    place.add(pool.take());
    return place;
  }

  /** @throws GatewayError 429 or 503 when the session must not stream another body */
  refuseStreaming(place: SessionPlace): void {
    place.refuseIfStreaming();
    this.streamedBodies.refuseIfFull(STREAMED_SHARE.proxied);
  }

  /** Counts a streamed body of the session, even when there is no place left. */
  stream(place: SessionPlace): void {
    place.stream();
    place.add(this.streamedBodies.take());
  }

  /**
   * Admits a body of this size in memory. It counts as several streamed bodies, whose memory adds up to its size.
   *
   * @throws GatewayError 429 or 503 when there is no room
   */
  streamLarge(place: SessionPlace, bytes: number): void {
    while (place.streamed * STREAMED_BODY_BYTES < bytes) {
      this.refuseStreaming(place);
      this.stream(place);
    }
  }

  /** An upper bound for the memory that everything admitted at present may use. */
  get promisedBytes(): number {
    const calls = [this.identityProvider, this.sessions, this.signOuts, this.reads, this.streams];
    const inFlight = calls.reduce((sum, { inUse }) => sum + inUse, 0);
    return (
      this.#processBytes +
      inFlight * WAITING_CALL_BYTES +
      this.requestBodies.usedBytes +
      this.streamedBodies.inUse * STREAMED_BODY_BYTES
    );
  }
}
