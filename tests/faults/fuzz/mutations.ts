/** Changes the bytes of a valid request: flips, inserts, deletes, duplicates, splices. */

import type { Random } from './random.ts';

const TELLING = [
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  '\0',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '/',
  '..',
  '%',
  '%2f',
  '?',
  '#',
  '\\',
  '"',
  '\x7f',
  '\xff',
  '0',
  '-',
];

/** `other` is a second valid request, of which pieces may be spliced in. */
export function mutate(random: Random, bytes: string, other: string): string {
  let mutated = bytes;
  for (let left = random.pick([1, 1, 1, 2, 3, 6]); left > 0; left--)
    mutated = mutateOnce(random, mutated, other);
  return mutated;
}

function mutateOnce(random: Random, bytes: string, other: string): string {
  const at = place(random, bytes);
  const until = Math.min(bytes.length, at + random.pick([1, 1, 2, 4, 16, 64]));
  const [before, middle, after] = [bytes.slice(0, at), bytes.slice(at, until), bytes.slice(until)];
  return random.make(
    () => before + flipped(random, bytes.charAt(at)) + bytes.slice(at + 1),
    () => before + flipped(random, bytes.charAt(at)) + bytes.slice(at + 1),
    () => before + random.pick(TELLING) + bytes.slice(at),
    () => before + random.bytes(random.between(1, 8)) + bytes.slice(at),
    () => before + after,
    () => before + middle.repeat(random.pick([2, 2, 3, 200])) + after,
    () => duplicatedLine(random, bytes),
    () => before + other.slice(place(random, other)),
    () => before + other.slice(at, until) + after,
  );
}

/** Mostly in the head, which says more than the body. */
function place(random: Random, bytes: string): number {
  const head = bytes.indexOf('\r\n\r\n') + 4;
  return random.below((random.chance(0.8) ? Math.min(head, bytes.length) : bytes.length) || 1);
}

function flipped(random: Random, character: string): string {
  return character && String.fromCharCode(character.charCodeAt(0) ^ (1 << random.below(8)));
}

function duplicatedLine(random: Random, bytes: string): string {
  const lines = bytes.split('\r\n');
  const line = random.pick(lines);
  lines.splice(random.below(lines.length), 0, line);
  return lines.join('\r\n');
}
