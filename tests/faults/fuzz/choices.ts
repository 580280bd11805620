/** Choices that the grammar makes everywhere, each of which shrinks to the usual case, and the marker of a request. */

import fc, { type Arbitrary } from 'fast-check';

/** Stands for the marker in what is generated: a request gets a new marker each time it is sent. */
export const PLACEHOLDER = 'mTHE0REQUEST0m';

/** As long as the placeholder, so that lengths stay right. */
export function markerOf(index: number): string {
  return `m${String(index).padStart(12, '0')}m`;
}

/** Each marker once. They trace a call or a response to its request. */
export function markersIn(text: string): string[] {
  return [...new Set(text.match(/m\d{12}m/g))];
}

export function pick<Item>(items: readonly Item[]): Arbitrary<Item> {
  return fc.constantFrom(...items);
}

/** The odd case with this probability, else the usual one. */
export function rarely<Item>(probability: number, odd: Arbitrary<Item>, usual: Arbitrary<Item>) {
  const weight = Math.round(probability * 1000);
  const choices = [
    { weight: 1000 - weight, arbitrary: usual },
    { weight, arbitrary: odd },
  ];
  return fc.oneof({ withCrossShrink: true }, ...choices);
}

/** Up to so many items; each further one needs the same luck again. */
export function few<Item>(probability: number, item: Arbitrary<Item>, most = 3): Arbitrary<readonly Item[]> {
  const one = item.map((each): readonly Item[] => [each]);
  const lists = Array.from({ length: most }, (_, index) =>
    rarely<readonly Item[]>(probability ** (index + 1), one, fc.constant([])),
  );
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
