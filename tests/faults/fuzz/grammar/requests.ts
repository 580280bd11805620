/** Puts the requests of a connection together from the parts of the grammar. */

import fc, { type Arbitrary } from 'fast-check';
import { ORIGIN } from '../../../support/world.ts';
import { body } from './bodies.ts';
import { maybe, pick, rarely } from './choices.ts';
import { framing } from './framing.ts';
import { headerLines } from './headers.ts';
import { mutations } from './mutations.ts';
import { type RichResponse, richResponse } from './rich-responses.ts';
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

const MOST_GRAMMAR_REQUESTS = 4;
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
  const fromGrammar = fc.oneof(
    ...oddities.map((oddity) => grammarRequest(oddity, isForbidden).filter(mayBeSent)),
  );
  // A mutated request comes last, because nobody knows what it leaves behind on its connection.
  return fc
    .tuple(
      fc.array(fromGrammar, { maxLength: MOST_GRAMMAR_REQUESTS }),
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

function mutatedRequest(isForbidden: boolean): Arbitrary<FuzzRequest> {
  const ends = maybe(0.1, fc.nat(100));
  return fc
    .tuple(written(0, isForbidden), written(0.1, isForbidden), mutations(), ends, cuts(), richResponse())
    .map(([first, second, mutate, [percent = 100], cutsOf, response]) => {
      const mutated = mutate(first.bytes, second.bytes);
      const bytes = mutated.slice(0, Math.ceil((mutated.length * percent) / 100));
      // Any line could be read as the allowed origin, because nobody knows where a mutated header ends.
      const mayPass = ALLOWED_LINE.test(bytes);
      return { kind: 'mutated', bytes, isFramed: false, mayPass, cuts: cutsOf(bytes.length), response };
    });
}

/** @param oddity how likely each part is odd; at 0 the request is one that the studio could send */
function written(oddity: number, isForbidden: boolean): Arbitrary<Pick<FuzzRequest, 'bytes' | 'isFramed'>> {
  const linesWithHost = (odd: number) => headerLines(oddity, isForbidden, odd);
  return fc
    .tuple(
      aim(oddity),
      linesWithHost(oddity / 2),
      // An odd host and this path have together led to the wrong route before.
      linesWithHost(0.4),
      maybe(oddity / 4, fc.constant(true)),
      fc.tuple(body(oddity, 'sign-in'), body(oddity, 'generation'), framing(oddity)),
      rarely(oddity / 20, pick(VERSIONS), fc.constant('HTTP/1.1')),
    )
    .map(
      ([{ method, target }, lines, linesForHealth, [alwaysBody], [signIn, generation, frame], version]) => {
        const all = [...(target.includes('/api/health') ? linesForHealth : lines)];
        const { contentType, bytes: content } = target.includes('/auth/') ? signIn : generation;
        const framed = frame(content);
        const hasBody = alwaysBody === true || ['POST', 'PUT', 'PATCH'].includes(method);
        if (hasBody && contentType !== undefined) all.push(`Content-Type: ${contentType}`);
        if (hasBody) all.push(...framed.lines);
        return {
          bytes: `${method} ${target} ${version}\r\n${all.join('\r\n')}\r\n\r\n${hasBody ? framed.bytes : ''}`,
          isFramed: KNOWN_METHODS.test(method) && (!hasBody || framed.isHonest),
        };
      },
    );
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
  return rarely(0.3, some, fc.constant([])).map(
    (shares) => (length) =>
      shares.map((share) => Math.floor((share * length) / 1000)).toSorted((first, second) => first - second),
  );
}
