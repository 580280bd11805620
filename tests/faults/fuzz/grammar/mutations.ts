/** Changes the bytes of a valid request: flips, inserts, deletes, duplicates, splices. */

import fc, { type Arbitrary } from 'fast-check';
import { pick, rarely, words } from './choices.ts';

/** `other` is a second valid request, of which pieces may be spliced in. */
type Mutation = (bytes: string, other: string) => string;

const SPECIAL = [
  ...words('\0 : ; , / .. % %2f ? # \\ " \x7f \xff 0 -'),
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  ' ',
  '\t',
];
const MOST = 0xffffff;

export function mutations(): Arbitrary<Mutation> {
  return fc
    .oneof(
      { weight: 3, arbitrary: fc.array(mutation(), { minLength: 1, maxLength: 1 }) },
      { weight: 2, arbitrary: fc.array(mutation(), { minLength: 1, maxLength: 4 }) },
      { weight: 1, arbitrary: fc.array(mutation(), { minLength: 1, maxLength: 10 }) },
    )
    .map((each) => (bytes, other) => each.reduce((mutated, mutate) => mutate(mutated, other), bytes));
}

/** What is done at a place with the next bytes. Some are listed twice to be more likely. */
type Edit = (old: string, amount: number, text: string) => string;
const EDITS: readonly { readonly length: 'none' | 'one' | 'some'; readonly edit: Edit }[] = [
  { length: 'one', edit: flipped },
  { length: 'one', edit: flipped },
  { length: 'none', edit: (_old, _amount, text) => text },
  { length: 'none', edit: (_old, _amount, text) => text },
  { length: 'some', edit: () => '' },
  { length: 'some', edit: (old, amount) => old.repeat(amount === 7 ? 200 : 2) },
];

function mutation(): Arbitrary<Mutation> {
  const text = fc.oneof(pick(SPECIAL), fc.array(fc.nat(255), { maxLength: 8 }).map(textOf));
  const edits = fc.tuple(pick(EDITS), place(), pick([1, 1, 2, 4, 16, 64]), fc.nat(7), text).map(
    ([{ length, edit }, at, some, amount, text]): Mutation =>
      (bytes) => {
        const start = at(bytes);
        const end = start + { none: 0, one: 1, some }[length];
        return bytes.slice(0, start) + edit(bytes.slice(start, end), amount, text) + bytes.slice(end);
      },
  );
  const splices = fc.tuple(place(), place(), pick([1, 4, 16, 64, MOST])).map(
    ([at, from, length]): Mutation =>
      (bytes, other) => {
        const [start, otherStart] = [at(bytes), from(other)];
        const rest = length === MOST ? '' : bytes.slice(start + length);
        return bytes.slice(0, start) + other.slice(otherStart, otherStart + length) + rest;
      },
  );
  const duplicates = fc.tuple(place(), place()).map(
    ([from, to]): Mutation =>
      (bytes) =>
        duplicatedLine(bytes, from(bytes), to(bytes)),
  );
  return fc.oneof(
    { weight: EDITS.length, arbitrary: edits },
    { weight: 2, arbitrary: splices },
    { weight: 1, arbitrary: duplicates },
  );
}

function textOf(codes: readonly number[]): string {
  return String.fromCharCode(...codes);
}

/** Mostly in the head, which decides more than the body. */
function place(): Arbitrary<(bytes: string) => number> {
  const anywhere = fc.constant((bytes: string) => bytes.length);
  const inHead = fc.constant((bytes: string) => Math.min(bytes.indexOf('\r\n\r\n') + 4, bytes.length));
  return fc.tuple(fc.nat(MOST), rarely(0.2, anywhere, inHead)).map(
    ([number, end]) =>
      (bytes) =>
        number % (end(bytes) || 1),
  );
}

function flipped(character: string, bit: number): string {
  return character && String.fromCharCode(character.charCodeAt(0) ^ (1 << bit));
}

function duplicatedLine(bytes: string, from: number, to: number): string {
  const lines = bytes.split('\r\n');
  lines.splice(to % lines.length, 0, lines[from % lines.length] ?? '');
  return lines.join('\r\n');
}
