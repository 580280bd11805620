/** Changes the bytes of a valid request: flips, inserts, deletes, repeats, and splices in pieces of another one. */

import fc, { type Arbitrary } from 'fast-check';
import { pick, rarely, words } from './choices.ts';

const SPECIAL = [
  ...words('\0 : ; , / .. % %2f ? # \\ " \x7f \xff 0 -'),
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  ' ',
  '\t',
];

/** @param piece a piece of the other request */
type Edit = (before: string, after: string, text: string, length: number, piece: string) => string;
const flip: Edit = (before, after, _, length) =>
  before + String.fromCharCode(after.charCodeAt(0) ^ (1 << (length % 8))) + after.slice(1);
const insert: Edit = (before, after, text) => before + text + after;
const splice: Edit = (before, after, _, length, piece) =>
  before + piece.slice(0, length) + after.slice(length);
/** Those that are listed twice are more likely. */
const EDITS: readonly Edit[] = [
  ...[flip, flip, insert, insert, splice, splice],
  (before, after, _, length) => before + after.slice(length),
  (before, after, _, length) => before + after.slice(0, length).repeat(99) + after,
  (before, _, __, ___, piece) => before + piece,
  (before) => before,
  // A line of the other request, which begins where a line begins.
  (before, after, _, __, piece) =>
    `${before}${after.split('\n', 1)}\n${piece.split('\n')[1]}\n${after.replace(/^.*\n?/, '')}`,
];

export function mutations(): Arbitrary<(bytes: string, other: string) => string> {
  const random = fc.array(fc.nat(255), { maxLength: 8 }).map((codes) => String.fromCharCode(...codes));
  const mutation = fc.record({
    edit: pick(EDITS),
    // Mostly in the head, which decides more than the body.
    isAnywhere: rarely(0.2, fc.constant(true), fc.constant(false)),
    at: fc.nat(0xffffff),
    from: fc.nat(0xffffff),
    length: pick([1, 1, 2, 4, 16, 64]),
    text: fc.oneof(pick(SPECIAL), random),
  });
  const several = fc.array(mutation, { minLength: 1, maxLength: 10 });
  return rarely(
    0.5,
    several,
    mutation.map((each) => [each]),
  ).map((changes) => (bytes, other) => {
    return changes.reduce((bytes, { edit, isAnywhere, at, from, length, text }) => {
      const end = (text: string) => (isAnywhere ? text.length : text.indexOf('\r\n\r\n') + 4) || 1;
      const place = at % end(bytes);
      return edit(bytes.slice(0, place), bytes.slice(place), text, length, other.slice(from % end(other)));
    }, bytes);
  });
}
