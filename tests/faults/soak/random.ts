/** Chance that can be had again: the same seed gives the same numbers. */

export interface Random {
  /** A whole number from 0 to below the limit. */
  below(limit: number): number;
  pick<const Item>(items: readonly [Item, ...Item[]]): Item;
}

/** Mulberry32: 32 bits of state are plenty for choosing what to send. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const below = (limit: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
  return { below, pick: (items) => items[below(items.length)] ?? items[0] };
}
