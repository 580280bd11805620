/** Watches every streamed body: who is silent, who falls behind, and who is cut off to make room for others. */

import type { CutOff } from '../record/request-record.ts';
import { type Connection, connectionKey, sendQueues } from './send-queues.ts';
import type { SessionUse } from './session-limit.ts';

/** A streamed body in flight. All times are those of the watch, in milliseconds. */
export interface WatchedBody {
  /** Whom it waits for at the moment, and since when. */
  readonly waitsFor: 'upstream' | 'reader' | 'memory';
  readonly waitsSince: number;
  /** When its reader was last seen to take something. */
  readonly takenAt: number;
  /** Whether all of it has been written, and the kernel has not yet sent it. */
  readonly isComplete: boolean;
  readonly memory: BodyMemory;
  /** That of its client, where it is known. */
  readonly connection: Connection | undefined;
  /** Acts when it has waited for too long. */
  check(now: number): void;
  /** @param bytes what the kernel has not yet sent of it */
  noteQueue(bytes: number, now: number): void;
  /** Breaks its client's connection, and gives its memory back. */
  cutOff(why: CutOff): void;
}

/** What a body needs from the memory that is reserved for it. */
export interface BodyMemory {
  readonly watch: BodyWatch;
  /** Undefined for public playback. */
  readonly use: SessionUse | undefined;
  /** Whether the body may be cut off to make room. */
  readonly isExpendable: boolean;
  tryReserveRead(isDrained: boolean): boolean;
  onRead(): void;
  fallBehind(): boolean;
  catchUp(): void;
  giveBodyUp(): void;
}

const TICK_MS = 100;
/** After a chunk has waited so long, its reader is behind, and the upstream's bytes pile up. */
export const BEHIND_MS = 100;
/** After this it may be cut off while the kernel charges too much. One that reads is behind for a moment on a busy machine. */
const FAR_BEHIND_MS = 1000;
/**
 * How long a reader must have stood still before its body is cut off to make room. One who reads 16 KB/s from a large
 * window leaves the send queue as it is for 24 s.
 */
const STANDING_MS = { ofGuest: 10_000, ofUser: 30_000 };
/** Two looks fit into the shorter of them, so that a reader that moves between them is seen. */
const LOOK_EVERY_MS = 4000;
const LOOK_WHEN_SHORT_EVERY_MS = 1000;
/** How many bodies are cut off at most until the next tick, because the kernel's charge shows only later what that frees. */
const MOST_CUT_A_TICK = 2;

/** Who else needs ticks. */
interface Listener {
  /** Called ten times a second while {@link needsTicks} says so, or bodies are in flight. */
  onTick(): void;
  needsTicks(): boolean;
}

export class BodyWatch {
  /** Counted in ticks, so that nobody is blamed for a pause of the process. */
  now = 0;
  readonly #bodies = new Set<WatchedBody>();
  #standing: WatchedBody[] = [];
  #standingAt = -1;
  #cut = 0;
  readonly #listener: Listener | undefined;
  #timer: Timer | undefined;

  constructor(listener?: Listener) {
    this.#listener = listener;
  }

  /** Whether some of them wait for memory. */
  get someWait(): boolean {
    return this.#bodies.values().some(({ waitsFor }) => waitsFor === 'memory');
  }

  add(body: WatchedBody): void {
    this.#bodies.add(body);
    this.wake();
  }

  remove(body: WatchedBody): void {
    this.#bodies.delete(body);
    this.#rest();
  }

  /** Ticks for those who wait for memory. */
  wake(): void {
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
  }

  #rest(): void {
    if (this.#bodies.size > 0 || this.#listener?.needsTicks()) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Cuts off bodies whose readers stand still, until there is room: public ones before those of users, and then those
   * that have stood still longest. Nobody who reads is cut off, and no user for public playback.
   *
   * @param claimant the body that needs the room; undefined when no body does, such as for a generation that begins
   * @param onlyOf a session that has used up its share, so that only its own bodies are cut off
   */
  makeRoom(hasRoom: () => boolean, claimant?: BodyMemory, onlyOf?: SessionUse): boolean {
    if (hasRoom()) return true;
    if (this.#cut === MOST_CUT_A_TICK) return false;
    return this.#standingFor(claimant, onlyOf)
      .slice(0, MOST_CUT_A_TICK - this.#cut)
      .some((body) => {
        this.#cut++;
        body.cutOff('room for others');
        return hasRoom();
      });
  }

  /**
   * Cuts off bodies whose readers are far behind and for which there was no memory, those that wait longest first, until
   * there is room. What the upstream sends of them piles up.
   */
  cutOffBehind(hasRoom: () => boolean): void {
    const behind = [...this.#bodies].filter(
      ({ memory, waitsFor, waitsSince, isComplete }) =>
        waitsFor === 'reader' &&
        !isComplete &&
        this.now - waitsSince >= FAR_BEHIND_MS &&
        memory.isExpendable &&
        !memory.fallBehind(),
    );
    for (const body of behind.sort((a, b) => a.waitsSince - b.waitsSince)) {
      if (this.#cut === MOST_CUT_A_TICK || hasRoom()) return;
      this.#cut++;
      body.cutOff('no memory');
    }
  }

  /** Breaks all connections. If Bun ended them, an HTTP/1.0 client would take a part for the whole. */
  endAll(): void {
    for (const body of this.#bodies) body.cutOff('shutdown');
  }

  #standingFor(claimant: BodyMemory | undefined, onlyOf: SessionUse | undefined): WatchedBody[] {
    const isPublic = claimant && claimant.use === undefined;
    // Found once a tick, because every body that waits for memory asks at each tick.
    if (this.#standingAt !== this.now)
      this.#standing = [...this.#bodies].filter(
        (body) => body.memory.isExpendable && this.#standsStill(body),
      );
    this.#standingAt = this.now;
    const standing = this.#standing.filter(
      (body) =>
        this.#bodies.has(body) &&
        this.#standsStill(body) &&
        body.memory !== claimant &&
        (onlyOf ? body.memory.use === onlyOf : isOfGuest(body) || !isPublic),
    );
    return standing.sort(
      (a, b) =>
        Number(isOfGuest(b)) - Number(isOfGuest(a)) ||
        Number(a.waitsFor === 'memory') - Number(b.waitsFor === 'memory') ||
        a.takenAt - b.takenAt,
    );
  }

  #standsStill(body: WatchedBody): boolean {
    const longest = isOfGuest(body) ? STANDING_MS.ofGuest : STANDING_MS.ofUser;
    return body.waitsFor !== 'upstream' && this.now - body.takenAt >= longest;
  }

  #tick(): void {
    this.now += TICK_MS;
    this.#cut = 0;
    for (const body of this.#bodies) body.check(this.now);
    if (this.now % LOOK_WHEN_SHORT_EVERY_MS === 0) void this.#look();
    this.#listener?.onTick();
    this.#rest();
  }

  /**
   * A send queue that shrinks is being read. Writes do not show it: Linux reports a socket as writable only when a third
   * of its send buffer is free, which takes a steady listener more than a minute. Where the system does not tell, the
   * writes alone count.
   */
  async #look(): Promise<void> {
    const isDue = this.now % LOOK_EVERY_MS === 0;
    const waiting = [...this.#bodies].filter(
      ({ waitsFor, waitsSince, isComplete }) =>
        waitsFor === 'memory' ||
        isComplete ||
        (isDue && waitsFor === 'reader' && this.now - waitsSince >= LOOK_WHEN_SHORT_EVERY_MS),
    );
    if (waiting.length === 0) return;
    const queues = await sendQueues();
    for (const body of waiting) {
      const queued = body.connection && queues.get(connectionKey(body.connection));
      if (queued !== undefined) body.noteQueue(queued, this.now);
    }
  }
}

function isOfGuest({ memory }: WatchedBody): boolean {
  return memory.use === undefined;
}
