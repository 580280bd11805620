/** The interface of the replay store, which remembers refreshes and sign-outs of refresh tokens for a while. */

/** A record is a claim, the sealed pair of a renewal, a sign-out, or one of the words below. */
export const CLAIMED = 'claimed:';
export const RENEWED = 'renewed:';
export const REJECTED = 'rejected';
export const UNREACHABLE = 'unreachable';
/** Followed by a time in milliseconds since the epoch: requests that arrive from then on get their cookies cleared. */
export const ENDED = 'ended:';
/** Marks a token that a refresh has issued. Followed by the time when a client first presented it, if known. */
export const ISSUED = 'issued:';

export function isEnded(record: string | undefined): record is `${typeof ENDED}${string}` {
  return record?.startsWith(ENDED) === true;
}

/** Stores records by key, each with a lifetime. Coordination relies on `add` and `replace` being atomic. */
export interface ReplayStore {
  /** Adds the record unless there is one. Returns the existing record, or undefined when this one was added. */
  add(key: string, record: string, lifetimeMs: number): Promise<string | undefined>;
  /** Replaces the record if it equals `expected`. Returns whether it did. */
  replace(key: string, expected: string, record: string, lifetimeMs: number): Promise<boolean>;
  /**
   * Records a sign-out unless there is one, and returns the previous record. A token has worked when a refresh has
   * spent or issued it. The number of other sign-outs is bounded, because anybody can send them with made-up tokens.
   */
  end(
    key: string,
    ended: string,
    lifetimes: SignOutLifetimes,
    hasWorked?: boolean,
  ): Promise<string | undefined>;
  /** Marks this token as issued by a refresh, for as long as a response may still bring it to a browser. */
  markIssued(key: string, lifetimeMs: number): Promise<void>;
  /** Records when a client first presented this token, if a refresh has issued it. */
  markPresented(key: string, at: number): Promise<void>;
  /** When a client first presented this token, in milliseconds since the epoch. */
  presentedAt(key: string): Promise<number | undefined>;
  get(key: string): Promise<string | undefined>;
  /** How long an outcome must stay for waiting requests of other processes. */
  readonly lingerMs: number;
}

/** How long a sign-out is kept: for a token that has worked, for one that is being refreshed, and for any other. */
export interface SignOutLifetimes {
  readonly workedMs: number;
  readonly claimedMs: number;
  readonly unknownMs: number;
}

/** Undefined for an empty string. */
export function timeIn(text: string | undefined): number | undefined {
  return text ? Number(text) : undefined;
}
