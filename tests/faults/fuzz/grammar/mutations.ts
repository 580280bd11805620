/** Changes the bytes of a valid request: flips, inserts, deletes, duplicates, splices. */

import fc, { type Arbitrary } from 'fast-check';
import { pick, rarely, words } from './choices.ts';

/** `other` is a second valid request, of which pieces may be spliced in. */
type Mutation = (bytes: string, other: string) => string;

const CONTROLS = ['\r', '\n', '\r\n', '\r\n\r\n', ' ', '\t'];
const SPECIAL = [...words('\0 : ; , / .. % %2f ? # \\ " \x7f \xff 0 -'), ...CONTROLS];
const MOST = 0xffffff;

/** Where something is changed, and with what. */
interface Change {
  readonly at: number;
  readonly from: number;
  readonly length: number;
  readonly bit: number;
  readonly text: string;
}
type Edit = (change: Change, bytes: string, other: string) => string;

const replaced = (bytes: string, at: number, length: number, text: string) =>
  bytes.slice(0, at) + text + bytes.slice(at + length);
const flip: Edit = ({ at, bit }, bytes) =>
  replaced(bytes, at, 1, String.fromCharCode(bytes.charCodeAt(at) ^ (1 << bit)));
const insert: Edit = ({ at, text }, bytes) => replaced(bytes, at, 0, text);
const remove: Edit = ({ at, length }, bytes) => replaced(bytes, at, length, '');
const repeat: Edit = ({ at, length, bit }, bytes) =>
  replaced(bytes, at, 0, bytes.slice(at, at + length).repeat(bit === 7 ? 199 : 1));
const splice: Edit = ({ at, from, length }, bytes, other) =>
  replaced(bytes, at, length, other.slice(from, from + length));
const spliceEnd: Edit = ({ at, from }, bytes, other) => bytes.slice(0, at) + other.slice(from);
const duplicateLine: Edit = ({ at, from }, bytes) => {
  const lines = bytes.split('\r\n');
  return lines.toSpliced(at % lines.length, 0, lines[from % lines.length] ?? '').join('\r\n');
};
/** Those that are listed twice are more likely. */
const EDITS = [flip, flip, insert, insert, remove, repeat, splice, splice, spliceEnd, duplicateLine];

export function mutations(): Arbitrary<Mutation> {
  const several = (weight: number, maxLength: number) => {
    return { weight, arbitrary: fc.array(mutation(), { minLength: 1, maxLength }) };
  };
  return fc
    .oneof(several(3, 1), several(2, 4), several(1, 10))
    .map((each) => (bytes, other) => each.reduce((mutated, mutate) => mutate(mutated, other), bytes));
}

function mutation(): Arbitrary<Mutation> {
  const random = fc.array(fc.nat(255), { maxLength: 8 }).map((codes) => String.fromCharCode(...codes));
  const change = fc.record({
    at: fc.nat(MOST),
    from: fc.nat(MOST),
    length: pick([1, 1, 2, 4, 16, 64]),
    bit: fc.nat(7),
    text: fc.oneof(pick(SPECIAL), random),
  });
  // Mostly in the head, which decides more than the body.
  const isAnywhere = rarely(0.2, fc.constant(true), fc.constant(false));
  return fc.tuple(pick(EDITS), change, isAnywhere).map(([edit, change, isAnywhere]) => (bytes, other) => {
    const lengthOf = (text: string) => (isAnywhere ? text.length : text.indexOf('\r\n\r\n') + 4) || 1;
    const [at, from] = [change.at % lengthOf(bytes), change.from % lengthOf(other)];
    return edit({ ...change, at, from }, bytes, other);
  });
}
