/** Remembers which addresses have given parts of different representations, as servers with ETags of their own do. */

const REMEMBERED_FOR_MS = 600_000;
const MOST_ADDRESSES = 1000;

export class ChangingAddresses {
  /** Until when each counts, by its hash, because an address may be long. The oldest is first. */
  readonly #until = new Map<number | bigint, number>();

  add(url: string): void {
    const key = Bun.hash(url);
    this.#until.delete(key);
    this.#until.set(key, performance.now() + REMEMBERED_FOR_MS);
    const [oldest] = this.#until.keys();
    if (oldest !== undefined && this.#until.size > MOST_ADDRESSES) this.#until.delete(oldest);
  }

  has(url: string): boolean {
    return (this.#until.get(Bun.hash(url)) ?? 0) > performance.now();
  }
}
