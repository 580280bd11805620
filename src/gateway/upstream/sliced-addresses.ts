/** Remembers which addresses have been played in slices, and which have given slices of different representations. */

const REMEMBERED_FOR_MS = 600_000;
const MOST_ADDRESSES = 1000;

/** Where servers give ETags of their own, the representation seems to change, so the address is not sliced. */
type State = 'sliced' | 'changing';

interface Known {
  readonly state: State;
  readonly until: number;
}

export class SlicedAddresses {
  /** By the hash of each, because an address may be long. The oldest is first. */
  readonly #known = new Map<number | bigint, Known>();

  note(url: string, state: State): void {
    const key = Bun.hash(url);
    this.#known.delete(key);
    this.#known.set(key, { state, until: performance.now() + REMEMBERED_FOR_MS });
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > MOST_ADDRESSES) this.#known.delete(oldest);
  }

  /** The next download is not sliced: it would break as well where calls are counted, or outlives its token. */
  noteBroken(url: string): void {
    if (this.stateOf(url) === 'sliced') this.#known.delete(Bun.hash(url));
  }

  /** Undefined when nothing is known of it. */
  stateOf(url: string): State | undefined {
    const known = this.#known.get(Bun.hash(url));
    return known && known.until > performance.now() ? known.state : undefined;
  }
}
