/** Choices that the grammar makes everywhere. Each shrinks to the usual case. */

import fc, { type Arbitrary } from 'fast-check';

/** One of the items; shrinks to the first. */
export function pick<Item>(items: readonly Item[]): Arbitrary<Item> {
  return fc.constantFrom(...items);
}

/** The odd case with this probability, else the usual one. */
export function rarely<Item>(
  probability: number,
  odd: Arbitrary<Item>,
  usual: Arbitrary<Item>,
): Arbitrary<Item> {
  const weight = Math.round(probability * 1000);
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 1000 - weight, arbitrary: usual },
    { weight, arbitrary: odd },
  );
}

/** A list of one with this probability, else an empty list. */
export function maybe<Item>(probability: number, item: Arbitrary<Item>): Arbitrary<readonly Item[]> {
  const one = item.map((each): readonly Item[] => [each]);
  return rarely<readonly Item[]>(probability, one, fc.constant([]));
}

/** Up to three items; each further one needs the same luck again. */
export function few<Item>(probability: number, item: Arbitrary<Item>): Arbitrary<readonly Item[]> {
  const square = probability ** 2;
  const lists = [maybe(probability, item), maybe(square, item), maybe(square * probability, item)] as const;
  return fc.tuple(...lists).map((each) => each.flat());
}

/** The items of a text, separated by spaces or line ends. */
export function words(text: string): string[] {
  return text.trim().split(/[ \n]+/);
}

/** The items of a text, separated by ` | ` or by line ends without a carriage return. */
export function items(text: string): string[] {
  return text.split(/ \| |(?<!\r)\n */);
}
