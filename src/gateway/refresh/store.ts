/** What is known of a refresh token for a while: that it is being refreshed, what came of it, that it was signed out. */

/** What a record says: who refreshes, the sealed pair that came of it, or one of the words below. */
export const CLAIMED = 'claimed:';
export const RENEWED = 'renewed:';
export const REJECTED = 'rejected';
export const UNREACHABLE = 'unreachable';
/** Followed by a time in milliseconds since the epoch: requests that arrive from then on get their cookies cleared. */
export const ENDED = 'ended:';
/** Not a record but a mark beside it: a refresh has issued this token. Followed by the time when a client first
 * presented it, if one has. */
export const ISSUED = 'issued:';

export function isEnded(record: string | undefined): record is `${typeof ENDED}${string}` {
  return record?.startsWith(ENDED) === true;
}

/**
 * Records by key, each with a lifetime. The coordination of refreshes rests on `add` and `replace` being atomic.
 */
export interface ReplayStore {
  /** Keeps the record unless there is one; gives the one that is there, undefined when it was added. */
  add(key: string, record: string, lifetimeMs: number): Promise<string | undefined>;
  /** Keeps the record if `expected` is there; tells whether it was. */
  replace(key: string, expected: string, record: string, lifetimeMs: number): Promise<boolean>;
  /**
   * Keeps `ended`, unless a sign-out is there, and returns the record that was there. A token has worked when a refresh
   * has spent or issued it. The number of other sign-outs is bounded, because anybody can send them with made-up tokens.
   */
  end(
    key: string,
    ended: string,
    lifetimes: SignOutLifetimes,
    hasWorked?: boolean,
  ): Promise<string | undefined>;
  /** Remembers that a refresh has issued this token, for as long as a response may still bring it to a browser. */
  markIssued(key: string, lifetimeMs: number): Promise<void>;
  /** Remembers when a client first presented this token, if a refresh has issued it. */
  markPresented(key: string, at: number): Promise<void>;
  /** When a client first presented this token, in milliseconds since the epoch. */
  presentedAt(key: string): Promise<number | undefined>;
  get(key: string): Promise<string | undefined>;
  /** How long an outcome must stay for those who wait for it in other processes. */
  readonly lingerMs: number;
}

/** How long a sign-out is kept: of a token that has worked, of one that is being refreshed, of any other. */
export interface SignOutLifetimes {
  readonly workedMs: number;
  readonly claimedMs: number;
  readonly unknownMs: number;
}

/** Undefined for an empty text. */
export function timeIn(text: string | undefined): number | undefined {
  return text ? Number(text) : undefined;
}
