/** All that is admitted by our own counters: calls to other servers, request bodies, streamed response bodies. */

import {
  GATEWAY_BYTES,
  PUBLIC_DETAILS_LIMIT,
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
 * The part of {@link Admission.streamedBodies} that may be in use for one more of the kind: strangers get the smallest,
 * so that they never take a place from a user, and a paid generation never waits for one.
 */
export const STREAMED_SHARE = {
  /** Public playback. */
  public: 1 / 2,
  /** What a signed-in user has relayed. */
  proxied: 3 / 4,
  generation: 1,
} as const;

/** The part of them that one session may stream: a few sessions cannot use up what is left for generations. */
const SESSION_SHARE = 1 / 4;
const MIN_STREAMED_PER_SESSION = 4;

/** The part of {@link Admission.streams} that strangers may use. */
export const PUBLIC_SHARE_OF_STREAMS = 3 / 4;

/**
 * A pool for each kind of call, so that none takes the connections of another: while the identity provider is slow,
 * sessions are checked, and while generations wait, they are renewed. A call is in flight until its upstream has ended
 * or has been given up, whether its client is still there or not: `server.pendingRequests` forgets it with the client.
 */
export class Admission {
  /** Token exchanges at the identity provider. */
  readonly identityProvider = new Pool(SHORT_CALL_LIMITS.identityProvider);
  /** Sign-in and refresh at the upstream. */
  readonly sessions = new Pool(SHORT_CALL_LIMITS.sessions);
  /** Apart from those, because anybody can ask for a sign-out with made-up tokens. */
  readonly signOuts = new Pool(SHORT_CALL_LIMITS.signOuts);
  /** Session check and models. */
  readonly reads = new Pool(SHORT_CALL_LIMITS.reads);
  /** What is public about a track, until its answer has been sent; its audio is among the streamed bodies. */
  readonly publicDetails = new Pool(PUBLIC_DETAILS_LIMIT);
  /** Generations and proxied calls, until their bodies have ended. */
  readonly streams: Pool;
  /** Response bodies that are streamed: unlike a call that waits, each costs megabytes. */
  readonly streamedBodies: Pool;
  readonly perSession: SessionLimit;
  readonly requestBodies: BodyBudget;
  readonly memoryLimitBytes: number;

  constructor({
    maxInFlightRequests,
    maxInFlightPerSession,
    maxStreamedBodies,
    memoryLimitBytes,
  }: Pick<
    Settings,
    'maxInFlightRequests' | 'maxInFlightPerSession' | 'maxStreamedBodies' | 'memoryLimitBytes'
  >) {
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

  /** What all that is admitted now may cost at most. */
  get promisedBytes(): number {
    const calls = [this.identityProvider, this.sessions, this.signOuts, this.reads, this.streams];
    const inFlight = calls.reduce((sum, { inUse }) => sum + inUse, 0);
    return (
      GATEWAY_BYTES +
      inFlight * WAITING_CALL_BYTES +
      this.requestBodies.usedBytes +
      this.streamedBodies.inUse * STREAMED_BODY_BYTES
    );
  }
}
