/** Puts the requests of a connection together from the parts of the grammar, and mutates the bytes of the last one. */

import fc, { type Arbitrary } from 'fast-check';
import { ORIGIN } from '../../support/world.ts';
import { body, framing } from './bodies.ts';
import { maybe, pick, rarely, words } from './choices.ts';
import { headerLines } from './headers.ts';
import { type RichResponse, richResponse } from './responses.ts';
import { aim } from './targets.ts';

export interface FuzzRequest {
  readonly kind: 'grammar' | 'mutated';
  /** One character per byte, with the placeholder of its marker. */
  readonly bytes: string;
  /** Whether it is complete, with a length that is right: then it must get a response. */
  readonly isFramed: boolean;
  /** Whether its origin is allowed, so that it may reach the upstream. */
  readonly mayPass: boolean;
  /** Where the bytes are split for sending. */
  readonly cuts: readonly number[];
  /** What the upstream responds when the token of the call asks for it. */
  readonly response: RichResponse;
}
type Written = Pick<FuzzRequest, 'bytes' | 'isFramed'>;

const VERSIONS = ['HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/0.9', 'http/1.1', 'HTTP/1.1 ', 'HTTP/11', ''];
/** Bun closes the connection on a method that it does not know, and sometimes on a CONNECT, without a response. */
const KNOWN_METHODS = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|PROPFIND)$/;
const ALLOWED_LINE = new RegExp(
  `(?:^|\\n)origin:[ \\t]*${ORIGIN.replaceAll('.', '\\.')}[ \\t]*\\r?(?:\\n|$)`,
  'i',
);

/** @param isForbidden whether no request may have the allowed origin */
export function requestsOfConnection(isForbidden: boolean): Arbitrary<readonly FuzzRequest[]> {
  const mayBeSent = ({ mayPass }: FuzzRequest) => !(isForbidden && mayPass);
  const oddities = [0, 0.1, 0.1, 0.25, 0.25, 0.5];
  const fromGrammar = fc.oneof(...oddities.map((oddity) => grammarRequest(oddity, isForbidden)));
  // A mutated request comes last, because nobody knows what it leaves behind on its connection.
  return fc
    .tuple(
      fc.array(fromGrammar.filter(mayBeSent), { maxLength: 4 }),
      maybe(0.9, mutatedRequest(isForbidden).filter(mayBeSent)),
    )
    .map((each) => each.flat());
}

function grammarRequest(oddity: number, isForbidden: boolean): Arbitrary<FuzzRequest> {
  return fc
    .tuple(written(oddity, isForbidden), cuts(), richResponse())
    .map(([{ bytes, isFramed }, cutsOf, response]) => {
      const mayPass = hasAllowedOrigin(bytes);
      return { kind: 'grammar', bytes, isFramed, mayPass, cuts: cutsOf(bytes.length), response };
    });
}

/** @param oddity how likely each part is odd; at 0 the request is one that the studio could send */
function written(oddity: number, isForbidden: boolean): Arbitrary<Written> {
  return fc
    .record({
      aimed: aim(oddity),
      lines: headerLines(oddity, isForbidden, oddity / 2),
      // An odd host and this path have together led to the wrong route before.
      linesForHealth: headerLines(oddity, isForbidden, 0.4),
      alwaysBody: rarely(oddity / 4, fc.constant(true), fc.constant(false)),
      signIn: body(oddity, 'sign-in'),
      generation: body(oddity, 'generation'),
      frame: framing(oddity),
      version: rarely(oddity / 20, pick(VERSIONS), fc.constant('HTTP/1.1')),
    })
    .map(({ aimed: { method, target }, version, frame, ...parts }) => {
      const all = [...(target.includes('/api/health') ? parts.linesForHealth : parts.lines)];
      const { contentType, bytes } = target.includes('/auth/') ? parts.signIn : parts.generation;
      const framed = frame(bytes);
      const hasBody = parts.alwaysBody || ['POST', 'PUT', 'PATCH'].includes(method);
      if (hasBody) all.push(`Content-Type: ${contentType}`);
      if (hasBody) all.push(...framed.lines);
      const head = `${method} ${target} ${version}\r\n${all.join('\r\n')}\r\n\r\n`;
      return {
        bytes: hasBody ? head + framed.bytes : head,
        isFramed: KNOWN_METHODS.test(method) && (!hasBody || framed.isHonest),
      };
    });
}

/** Whether there is one line for the origin, and it is the allowed one. */
function hasAllowedOrigin(bytes: string): boolean {
  const [head = ''] = bytes.split('\r\n\r\n', 1);
  const lines = head.split('\r\n').filter((line) => /^origin[ \t]*:/i.test(line));
  return lines.length === 1 && ALLOWED_LINE.test(head);
}

function cuts(): Arbitrary<(length: number) => number[]> {
  const some = pick([1, 1, 2, 3, 8, 40]).chain((count) =>
    fc.array(fc.nat(1000), { minLength: count, maxLength: count, size: 'max' }),
  );
  return rarely(0.3, some, fc.constant([])).map((shares) => (length) => {
    return shares.map((share) => Math.floor((share * length) / 1000)).toSorted((a, b) => a - b);
  });
}

interface Change {
  readonly edit: Edit;
  /** Where something is changed, where another piece comes from, and how long it is. */
  readonly at: number;
  readonly from: number;
  readonly length: number;
  readonly text: string;
}
/** `other` is a second valid request, of which pieces may be spliced in. */
type Edit = (bytes: string, change: Change, other: string) => string;

const SPECIAL = [
  ...words('\0 : ; , / .. % %2f ? # \\ " \x7f \xff 0 -'),
  ...['\r', '\n', '\r\n', '\r\n\r\n', ' ', '\t'],
];
const spliced = (bytes: string, { at }: Change, length: number, text: string) =>
  bytes.slice(0, at) + text + bytes.slice(at + length);
const flip: Edit = (bytes, change) =>
  spliced(bytes, change, 1, String.fromCharCode(bytes.charCodeAt(change.at) ^ (1 << (change.length % 8))));
const insert: Edit = (bytes, change) => spliced(bytes, change, 0, change.text);
const splice: Edit = (bytes, change, other) =>
  spliced(bytes, change, change.length, other.slice(change.from, change.from + change.length));
const repeatLine: Edit = (bytes, { at, from }) => {
  const lines = bytes.split('\r\n');
  return lines.toSpliced(at % lines.length, 0, lines[from % lines.length] ?? '').join('\r\n');
};
/** Those that are listed twice are more likely. */
const EDITS: readonly Edit[] = [
  ...[flip, flip, insert, insert, splice, splice, repeatLine],
  (bytes, change) => spliced(bytes, change, change.length, ''),
  (bytes, change) => spliced(bytes, change, 0, bytes.slice(change.at, change.at + 16).repeat(199)),
  (bytes, { at, from }, other) => bytes.slice(0, at) + other.slice(from),
];

function mutatedRequest(isForbidden: boolean): Arbitrary<FuzzRequest> {
  const random = fc.array(fc.nat(255), { maxLength: 8 }).map((codes) => String.fromCharCode(...codes));
  const change = fc.record({
    edit: pick(EDITS),
    at: fc.nat(0xffffff),
    from: fc.nat(0xffffff),
    length: pick([1, 1, 2, 4, 16, 64]),
    text: fc.oneof(pick(SPECIAL), random),
    // Mostly in the head, which decides more than the body.
    isAnywhere: rarely(0.2, fc.constant(true), fc.constant(false)),
  });
  const changes = fc.oneof(
    { weight: 3, arbitrary: fc.array(change, { minLength: 1, maxLength: 1 }) },
    { weight: 3, arbitrary: fc.array(change, { minLength: 1, maxLength: 10 }) },
  );
  const ends = maybe(0.1, fc.nat(100));
  return fc
    .tuple(written(0, isForbidden), written(0.1, isForbidden), changes, ends, cuts(), richResponse())
    .map(([first, { bytes: other }, changes, [percent = 100], cutsOf, response]) => {
      const mutated = changes.reduce((bytes, { isAnywhere, ...change }) => {
        const end = (text: string) => (isAnywhere ? text.length : text.indexOf('\r\n\r\n') + 4) || 1;
        const place = { at: change.at % end(bytes), from: change.from % end(other) };
        return change.edit(bytes, { ...change, ...place }, other);
      }, first.bytes);
      const bytes = mutated.slice(0, Math.ceil((mutated.length * percent) / 100));
      // Any line could be read as the allowed origin, because nobody knows where a mutated header ends.
      const mayPass = ALLOWED_LINE.test(bytes);
      return { kind: 'mutated', bytes, isFramed: false, mayPass, cuts: cutsOf(bytes.length), response };
    });
}
