/** A small seeded generator of random numbers: the same seed and stream give the same choices again. */

export class Random {
  #state: number;

  /** Streams of one seed are independent: each request has its own, so it can be made again alone. */
  constructor(seed: number, stream: number) {
    this.#state = mix(mix(seed | 0) ^ Math.imul(stream + 1, 0x9e3779b1));
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    return (mix(this.#state) >>> 0) % limit;
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  chance(probability: number): boolean {
    return this.below(1_000_000) < probability * 1_000_000;
  }

  pick<Item extends string | number | boolean | object>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error('there is nothing to pick from');
    return item;
  }

  /** Calls one of the makers. */
  make<Result>(...makers: readonly (() => Result)[]): Result {
    return this.pick(makers)();
  }

  /** `count` bytes, as a string of characters up to 0xff. */
  bytes(count: number): string {
    let text = '';
    for (let index = 0; index < count; index++) text += String.fromCharCode(this.below(256));
    return text;
  }
}

/** SplitMix32's finalizer. */
export function mix(value: number): number {
  let mixed = value;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return mixed ^ (mixed >>> 15);
}
