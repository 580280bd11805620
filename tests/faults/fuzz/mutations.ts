/** Changes the bytes of a valid request: flips, inserts, deletes, repeats, and splices in pieces of another one. */

import fc, { type Arbitrary } from 'fast-check';
import { pick, rarely, words } from './choices.ts';

interface Change {
  /** The bytes before and after the place of the change. */
  readonly before: string;
  readonly after: string;
  /** A piece of the other request. */
  readonly piece: string;
  readonly text: string;
  readonly length: number;
}
type Edit = (change: Change) => string;

const SPECIAL = [
  ...words('\0 : ; , / .. % %2f ? # \\ " \x7f \xff 0 -'),
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  ' ',
  '\t',
];
const flip: Edit = ({ before, after, length }) =>
  before + String.fromCharCode(after.charCodeAt(0) ^ (1 << (length % 8))) + after.slice(1);
const insert: Edit = ({ before, text, after }) => before + text + after;
const splice: Edit = ({ before, piece, after, length }) =>
  before + piece.slice(0, length) + after.slice(length);
/** Those that are listed twice are more likely. */
const EDITS: readonly Edit[] = [
  ...[flip, flip, insert, insert, splice, splice],
  ({ before, after, length }) => before + after.slice(length),
  ({ before, after, length }) => before + after.slice(0, length).repeat(99) + after,
  ({ before, piece }) => before + piece,
  ({ before }) => before,
  // A line of the other request, which begins where a line begins.
  ({ before, piece, after }) =>
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
  const one = mutation.map((each) => [each]);
  return rarely(0.5, several, one).map((changes) => (bytes, other) => {
    return changes.reduce((bytes, { edit, isAnywhere, at, from, ...change }) => {
      const end = (text: string) => (isAnywhere ? text.length : text.indexOf('\r\n\r\n') + 4) || 1;
      const [before, after] = [bytes.slice(0, at % end(bytes)), bytes.slice(at % end(bytes))];
      return edit({ ...change, before, after, piece: other.slice(from % end(other)) });
    }, bytes);
  });
}
