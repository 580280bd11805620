/** Limits the calls in flight of each session, so that one session cannot take all places. */

import { GatewayError } from '../errors.ts';
import { messages } from '../messages.ts';
import { RETRY_LATER, type Release } from './pool.ts';

/** The tokens by which a session is recognized. Declared here because `http` imports nothing from `session`. */
export interface SessionTokens {
  readonly accessToken: string | undefined;
  readonly refreshToken: string | undefined;
}

/** A hash of a token: short, and useless to a reader of the memory. */
type Key = bigint;

/** A session with calls in flight. */
interface CountedSession {
  inFlight: number;
  /** How many of them stream a body; generations do not count. */
  streamed: number;
  /** The keys of the tokens issued to this session since its calls began. */
  readonly issued: Key[];
  /** After a merge: the session that now counts the calls of this one. */
  mergedInto: CountedSession | undefined;
}

/** Counts the calls that carry a token, plus 1 for each time the token was issued. */
interface Reference {
  readonly session: CountedSession;
  count: number;
}

/** Bounds the tokens issued to a session that always has a call in flight. Beyond it, the oldest are forgotten. */
const MAX_ISSUED = 400;

/** The place of one call: it counts for its session, and in the pools that admitted it, until it is released. */
export class SessionPlace {
  readonly #limit: SessionLimit;
  readonly keys: readonly Key[];
  /** How many streamed bodies this call counts for. */
  streamed = 0;
  readonly #others: Release[] = [];

  constructor(limit: SessionLimit, keys: readonly Key[]) {
    this.#limit = limit;
    this.keys = keys;
  }

  /** Adds a renewed pair to the session: calls with the old tokens and with the new ones count together. */
  addPair(pair: SessionTokens): void {
    this.#limit.addPair(this, pair);
  }

  /** @throws GatewayError 429 when the session streams as many bodies as it may */
  refuseIfStreaming(): void {
    this.#limit.refuseIfStreaming(this);
  }

  /** Counts a streamed body, even beyond the limit. */
  stream(): void {
    this.#limit.stream(this);
  }

  /** Adds a place that is released together with this one. */
  add(release: Release): void {
    this.#others.push(release);
  }

  release(): void {
    this.#limit.release(this);
    for (const release of this.#others) release();
  }
}

/**
 * A call counts for both its refresh token and its access token: if only the refresh token counted, a user could make
 * up another one for each call. The calls in flight bound the memory, because only their sessions are remembered.
 */
export class SessionLimit {
  /** How many calls of one session may be in flight; 0 means that sessions have no limit. */
  readonly limit: number;
  readonly #maxStreamed: number;
  readonly #references = new Map<Key, Reference>();
  /** Secret, so that nobody can choose tokens with equal hashes. */
  readonly #hashKey = crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n;
  #refused = 0;

  /** @param maxStreamed how many calls of one session may stream a body */
  constructor(limit: number, maxStreamed: number) {
    this.limit = limit;
    this.#maxStreamed = maxStreamed;
  }

  get refused(): number {
    return this.#refused;
  }

  /** The number of remembered tokens. */
  get size(): number {
    return this.#references.size;
  }

  /** @throws GatewayError 429 when the session has as many calls in flight as it may have */
  refuseIfFull(tokens: SessionTokens): void {
    this.#refuseIfFull(this.#keysOf(tokens));
  }

  /** @throws GatewayError 429 when the session has as many calls in flight as it may have */
  enter(tokens: SessionTokens): SessionPlace {
    const keys = this.#keysOf(tokens);
    this.#refuseIfFull(keys);
    this.#join(keys).inFlight++;
    return new SessionPlace(this, keys);
  }

  addPair({ keys: [known] }: SessionPlace, pair: SessionTokens): void {
    if (known === undefined) return;
    const keys = this.#keysOf(pair);
    const { issued } = this.#join([known, ...keys]);
    issued.push(...keys);
    this.#forget([known, ...issued.splice(0, Math.max(0, issued.length - MAX_ISSUED))]);
  }

  refuseIfStreaming({ keys }: SessionPlace): void {
    if ((this.#sessionOf(keys[0])?.streamed ?? 0) >= this.#maxStreamed) this.#refuse();
  }

  stream(place: SessionPlace): void {
    place.streamed++;
    const session = this.#sessionOf(place.keys[0]);
    if (session) session.streamed++;
  }

  release({ keys, streamed }: SessionPlace): void {
    const session = this.#sessionOf(keys[0]);
    if (!session) return;
    session.inFlight--;
    session.streamed -= streamed;
    this.#forget(keys);
    if (session.inFlight === 0) this.#forget(session.issued);
  }

  /** @see RFC 6585 section 4 */
  #refuseIfFull(keys: readonly Key[]): void {
    if (keys.some((key) => (this.#sessionOf(key)?.inFlight ?? 0) >= this.limit)) this.#refuse();
  }

  #refuse(): never {
    this.#refused++;
    throw new GatewayError(429, messages.sessionBusy, { headers: RETRY_LATER });
  }

  /** Finds the session of these tokens, and merges sessions whose tokens appear together in one call. */
  #join(keys: readonly Key[]): CountedSession {
    let session: CountedSession | undefined;
    for (const key of keys) {
      const other = this.#sessionOf(key);
      if (!session) session = other;
      else if (other && other !== session) merge(session, other);
    }
    session ??= { inFlight: 0, streamed: 0, issued: [], mergedInto: undefined };
    for (const key of keys) {
      const reference = this.#references.get(key);
      if (reference) reference.count++;
      else this.#references.set(key, { session, count: 1 });
    }
    return session;
  }

  #sessionOf(key: Key | undefined): CountedSession | undefined {
    let session = key === undefined ? undefined : this.#references.get(key)?.session;
    while (session?.mergedInto) session = session.mergedInto;
    return session;
  }

  #forget(keys: readonly Key[]): void {
    for (const key of keys) {
      const reference = this.#references.get(key);
      if (reference && --reference.count === 0) this.#references.delete(key);
    }
  }

  #keysOf({ refreshToken, accessToken }: SessionTokens): Key[] {
    if (this.limit === 0) return [];
    const keys: Key[] = [];
    if (refreshToken !== undefined) keys.push(Bun.hash.wyhash(refreshToken, this.#hashKey));
    if (accessToken !== undefined) keys.push(Bun.hash.wyhash(accessToken, this.#hashKey));
    return keys;
  }
}

function merge(session: CountedSession, other: CountedSession): void {
  session.inFlight += other.inFlight;
  session.streamed += other.streamed;
  session.issued.push(...other.issued);
  other.mergedInto = session;
}
