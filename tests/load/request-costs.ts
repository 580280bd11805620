/** What one request costs; `tests/load/request-costs.test.ts` guards it, and the benchmark's page says what it was then. */

/**
 * JavaScript objects of every type, what these hold outside the heap, and system calls that send on a socket. These are
 * counts, so that they hardly depend on the machine and not at all on its speed. Work that makes no object and sends
 * nothing is not counted: only `bun run bench` sees it.
 */
export const COUNTED = ['objects', 'bytes', 'sends'] as const;
export type Counts = Readonly<Record<(typeof COUNTED)[number], number>>;

export const TRACK_PIECES = 100;
/**
 * One send is the call to the upstream. The others go to the client: a complete response is one, a range is a head, a
 * piece and an end, and a track is a head with the first piece, the other pieces, and an end. More sends are small
 * packets, each of which may wait for the network.
 */
export const COSTS: readonly (readonly [name: string, path: string, times: number, cost: Counts])[] = [
  ['models', '/api/music/models', 500, { objects: 183.5, bytes: 2_700, sends: 2 }],
  ['session check', '/api/auth/session', 500, { objects: 183.5, bytes: 2_700, sends: 2 }],
  ['short proxied call', '/api/upstream/v1/models', 500, { objects: 207, bytes: 2_700, sends: 2 }],
  ['refused origin', '/api/music/models', 500, { objects: 112.5, bytes: 770, sends: 1 }],
  ['range of 48 KB', '/api/upstream/v1/range', 200, { objects: 269, bytes: 50_300, sends: 4 }],
  ['track', '/api/upstream/v1/track', 50, { objects: 1_170, bytes: 1_658_400, sends: TRACK_PIECES + 2 }],
];
/** The noise is less: 1 % of the objects beside busy loops, 5 % of the bytes. A full socket could split a send. */
const MORE = { objects: 1.015, bytes: 1.1, sends: 1.015 };
/** When a request costs less than this, its row is too high to notice a later loss of 15 %: write down the new figure. */
const LESS = 0.9;

/** The least and the most that still counts as the same. */
export function boundsOf(written: number, count: keyof Counts): [number, number] {
  return [written * LESS, written * MORE[count]];
}
