/** The interface of the replay store, which keeps facts about refresh tokens for a time. */

/** Of two facts under one key, the one whose kind comes later counts. */
export const KINDS = [
  'issued',
  'presented',
  'unreachable',
  'reissued',
  'leased',
  'rejected',
  'renewed',
  'ended',
] as const;

export interface Fact {
  readonly kind: (typeof KINDS)[number];
  /** The id of a lease, the sealed pair of a refresh, or for how many ms after a sign-out cookies are kept. */
  readonly detail: string;
}

/** A fact, and when it was written, by the clock of this process: times of two machines are never compared. */
export interface Kept extends Fact {
  readonly writtenAt: number;
}

export interface Swapped<Found = Kept> {
  readonly isWritten: boolean;
  /** What was there instead of what was expected. */
  readonly before?: Found | undefined;
}

/** A refresh only reads a fact, and replaces it atomically if it is still the one that was read. */
export interface ReplayStore {
  get(key: string): Promise<Kept | undefined>;
  /** Writes `to` if the fact there is `from`. Undefined stands for no fact. */
  swap(key: string, from: Fact | undefined, to: Fact | undefined, lifetimeMs?: number): Promise<Swapped>;
  /** Keeps the fact in this process alone, with those that strangers can cause. False when there is one already. */
  keepHere(key: string, fact: Fact, lifetimeMs: number): Promise<boolean>;
}

export function isSame(one: Fact | undefined, other: Fact | undefined): boolean {
  return one?.kind === other?.kind && one?.detail === other?.detail;
}
