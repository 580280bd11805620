/** Who is refused before whom when memory is short. */

export interface Rung {
  /** What is admitted here, for the table in the README. */
  readonly what: string;
  /** How much of the ledger may be in use once it is admitted. */
  readonly share: number;
  /** How much of it the kernel may charge then, if that is another share. */
  readonly chargedShare?: number;
}

/** Each rung has the room of all before it, and a step more. */
function below(steps: number): number {
  return 1 - steps / 48;
}

/** What needs little, and others wait for, is not kept out by garbage that the kernel still charges. */
const WHATEVER_IS_CHARGED = { chargedShare: Number.POSITIVE_INFINITY };

/** The first is refused first. A body goes before a call that begins, because a break is worse than a refusal. */
export const LADDER = {
  guest: { share: below(8), what: 'public playback that begins' },
  playingGuest: { share: below(7), what: 'public playback that goes on' },
  user: { share: below(6), what: 'a proxied call that begins' },
  playingUser: { share: below(5), what: 'the body of its response' },
  behind: {
    share: below(4),
    what: 'a relayed request body, the response to a change, a generation whose reader is behind',
  },
  signInBody: { share: below(3), ...WHATEVER_IS_CHARGED, what: 'the body of a sign-in' },
  order: {
    share: below(2),
    ...WHATEVER_IS_CHARGED,
    what: 'a generation that begins, its order, a fact about a token',
  },
  // Whoever plays goes on beside orders, however many there are.
  nextSlice: {
    share: below(1),
    chargedShare: below(4),
    what: 'the next slice of a user who has taken the last',
  },
  session: {
    share: below(0),
    ...WHATEVER_IS_CHARGED,
    what: 'session check, models, sign-in, refresh, sign-out',
  },
} as const satisfies Readonly<Record<string, Rung>>;
