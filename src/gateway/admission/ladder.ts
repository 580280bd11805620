/** Who is refused before whom when memory is short. */

export interface Rung {
  /** How much of the ledger may be reserved once something is admitted here. */
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

/**
 * The first is refused first; what stands on each is in the README. A body goes before a call that begins, because a break
 * is worse than a refusal.
 */
export const LADDER = {
  guest: { share: below(8) },
  playingGuest: { share: below(7) },
  user: { share: below(6) },
  playingUser: { share: below(5) },
  behind: { share: below(4) },
  signInBody: { share: below(3), ...WHATEVER_IS_CHARGED },
  order: { share: below(2), ...WHATEVER_IS_CHARGED },
  // Whoever plays goes on beside orders, however many there are.
  nextSlice: { share: below(1), chargedShare: below(4) },
  session: { share: below(0), ...WHATEVER_IS_CHARGED },
} as const satisfies Readonly<Record<string, Rung>>;
