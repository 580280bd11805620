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
  /**
   * The id of a lease, or the sealed pair of a refresh. Of an end, for how many ms after it cookies are kept; nothing when
   * the token may be made up.
   */
  readonly detail: string;
}

/** Whether strangers can cause the fact, by tokens that they have made up. */
export function isByStrangers({ kind, detail }: Fact): boolean {
  return kind === 'unreachable' || kind === 'rejected' || (kind === 'ended' && detail === '');
}

/** A fact, and when it was written, by the clock of this process: times of two machines are never compared. */
export interface Kept extends Fact {
  readonly writtenAt: number;
}

export interface Swapped<Found = Kept> {
  readonly isWritten: boolean;
  /** What was there instead of what was expected. */
  readonly before?: Found | undefined;
  /** Whether only this process has answered, because what is shared is away. */
  readonly isAlone?: boolean;
}

/** A refresh only reads a fact, and replaces it atomically if it is still the one that was read. */
export interface ReplayStore {
  get(key: string): Promise<Kept | undefined>;
  /** Writes `to` if the fact there is `from`. Undefined stands for no fact. */
  swap(key: string, from: Fact | undefined, to: Fact | undefined, lifetimeMs?: number): Promise<Swapped>;
  /** Remembers in this process what was found, because what is shared may be lost. */
  keep(key: string, found: Kept, lifetimeMs: number): void;
}

export function isSame(one: Fact | undefined, other: Fact | undefined): boolean {
  return one?.kind === other?.kind && one?.detail === other?.detail;
}
