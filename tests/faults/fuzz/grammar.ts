/** Puts a request together from the vocabulary. */

import fc, { type Arbitrary } from 'fast-check';
import { ORIGIN } from '../../support/world.ts';
import { few, PLACEHOLDER, pick, rarely } from './choices.ts';
import { type RichResponse, richResponse } from './responses.ts';
import * as vocabulary from './vocabulary.ts';

export interface FuzzRequest {
  /** One character per byte, with the placeholder of its marker. */
  readonly bytes: string;
  /** Whether it is complete, with a length that is right: then it must get a response. */
  readonly isFramed: boolean;
  /** Whether its origin is allowed, so that it may reach the upstream. */
  readonly mayPass: boolean;
  /** What the upstream responds when the token of the call asks for it. */
  readonly response: RichResponse;
}

/** Bun closes the connection on a method that it does not know, and sometimes on a CONNECT, without a response. */
const KNOWN_METHODS = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|PROPFIND)$/;
const ALLOWED_LINE = new RegExp(`^origin:[ \\t]*${ORIGIN.replaceAll('.', '\\.')}[ \\t]*$`, 'i');

export function requestsOfConnection(): Arbitrary<readonly FuzzRequest[]> {
  return fc.array(fc.oneof(...[0, 0.1, 0.1, 0.25, 0.25, 0.5].map(request)), { minLength: 1, maxLength: 5 });
}

/** @param oddity how likely each part is odd; at 0 the request is one that the studio could send */
function request(oddity: number): Arbitrary<FuzzRequest> {
  const parts = {
    start: start(oddity),
    version: rarely(oddity / 20, pick(vocabulary.VERSIONS), fc.constant('HTTP/1.1')),
    host: rarely(oddity / 2, pick(vocabulary.HOSTS), fc.constant('Host: gateway.test')),
    // An odd host and this path have together led to the wrong route before.
    hostForHealth: rarely(0.4, pick(vocabulary.HOSTS), fc.constant('Host: gateway.test')),
    lines: lines(oddity),
    signIn: body(oddity, vocabulary.SIGN_INS),
    generation: body(oddity, vocabulary.GENERATIONS),
    type: rarely(oddity / 3, pick(vocabulary.ODD_TYPES), fc.constant('application/json')),
    frame: rarely(oddity / 4, pick(LIES), rarely(0.25, fc.constant(chunked), fc.constant(declared))),
    alwaysBody: rarely(oddity / 4, fc.constant(true), fc.constant(false)),
    response: richResponse(),
  };
  return fc
    .record(parts)
    .map(({ start: [method, target], version, lines, type, frame, response, ...parts }) => {
      const host = target.includes('/api/health') ? parts.hostForHealth : parts.host;
      const framed = frame(target.includes('/auth/') ? parts.signIn : parts.generation);
      const hasBody = parts.alwaysBody || ['POST', 'PUT', 'PATCH'].includes(method);
      const all = [host, ...lines, ...(hasBody ? [`Content-Type: ${type}`, ...framed.lines] : [])].join(
        '\r\n',
      );
      const origins = all.split('\r\n').filter((line) => /^origin[ \t]*:/i.test(line));
      return {
        bytes: `${method} ${target} ${version}\r\n${all}\r\n\r\n${hasBody ? framed.bytes : ''}`,
        isFramed: KNOWN_METHODS.test(method) && (!hasBody || framed.isHonest),
        mayPass: origins.length === 1 && origins.every((line) => ALLOWED_LINE.test(line)),
        response,
      };
    });
}

/** Method and target. */
function start(oddity: number): Arbitrary<readonly [method: string, target: string]> {
  const method = pick(vocabulary.METHODS);
  const path = rarely(oddity, fc.oneof(...vocabulary.ODD_PATHS.map(pick)), pick(vocabulary.PATHS));
  const prefix = rarely(oddity / 3, pick(vocabulary.ODD_PREFIXES), fc.constant(vocabulary.PROXY));
  const end = rarely(oddity / 2, pick(vocabulary.ENDS), fc.constant(''));
  const proxied = fc
    .tuple(method, prefix, path, end)
    .map(([method, ...parts]) => `${method} ${parts.join('')}`);
  const odd = fc.tuple(method, pick(vocabulary.ODD_TARGETS)).map((each) => each.join(' '));
  const query = fc.nat(8).map((page) => `?q=${PLACEHOLDER}&page=${page}`);
  return fc
    .record({
      aimed: fc.oneof(rarely(oddity / 2, odd, pick(vocabulary.ROUTES)), proxied),
      other: few(oddity, pick([...vocabulary.METHODS, ...vocabulary.ODD_METHODS]), 1),
      before: rarely(oddity / 4, pick(vocabulary.ODD_STARTS), fc.constant('')),
      search: rarely(0.4, query, fc.constant('')),
    })
    .map(({ aimed, other, before, search }) => {
      const space = aimed.indexOf(' ');
      return [other[0] ?? aimed.slice(0, space), before + aimed.slice(space + 1) + search];
    });
}

/** Every line but the host and those that say where the body ends. */
function lines(oddity: number): Arbitrary<readonly string[]> {
  const value = (usual: readonly string[]) => rarely(oddity / 2, pick(vocabulary.ODD_TOKENS), pick(usual));
  const cookies = fc.tuple(
    few(0.8, value(vocabulary.ACCESS), 1).map((each) => each.map((token) => `svc_music_access=${token}`)),
    few(0.7, value(vocabulary.REFRESH), 1).map((each) => each.map((token) => `svc_music_refresh=${token}`)),
    few(oddity / 2, pick(vocabulary.OTHER_COOKIES)),
  );
  const separator = rarely(oddity / 5, pick([';', '\r\nCookie: ']), fc.constant('; '));
  const cookie = fc.tuple(cookies, separator).map(([cookies, separator]) => {
    return cookies.flat().length ? [`Cookie: ${cookies.flat().join(separator)}`] : [];
  });
  const parts = fc.tuple(
    rarely(oddity / 2, pick(vocabulary.ODD_ORIGINS), pick(vocabulary.ORIGINS)),
    cookie,
    few(0.4, pick(vocabulary.LINES)),
    few(oddity, pick(vocabulary.ODD_LINES)),
  );
  return fc.tuple(parts, rarely(oddity, fc.nat(9), fc.constant(0))).map(([parts, turn]) => {
    const all = parts.flat();
    return [...all.slice(turn), ...all.slice(0, turn)];
  });
}

function body(oddity: number, usual: readonly string[]): Arbitrary<string> {
  const random = fc.array(fc.nat(255), { maxLength: 300, size: 'max' });
  const bytes = random.map((codes) => String.fromCharCode(...codes));
  return rarely(oddity, rarely(0.3, bytes, pick(vocabulary.ODD_BODIES)), pick(usual));
}

interface Framed {
  readonly lines: readonly string[];
  readonly bytes: string;
  /** Whether length and bytes agree. */
  readonly isHonest: boolean;
}
type Framing = (body: string) => Framed;

const CHUNKED = 'Transfer-Encoding: chunked';
const SMUGGLED = 'GET /api/upstream/v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
const exact = (length: number) => `Content-Length: ${length}`;
const declared: Framing = (bytes) => ({ lines: [exact(bytes.length)], bytes, isHonest: true });
const chunked: Framing = (body) => ({ lines: [CHUNKED], bytes: `${chunks(body)}0\r\n\r\n`, isHonest: true });
const lie = (bytes: string, ...lines: string[]): Framed => ({ lines, bytes, isHonest: false });
/** The ways that request smuggling relies on. */
const LIES: readonly Framing[] = [
  (body) => lie(body),
  (body) => lie(body, exact(body.length), exact(body.length + 1)),
  (body) => lie(body, exact(body.length), exact(body.length)),
  (body) => lie(body, `Content-Length: ${body.length}, ${body.length}`),
  (body) => lie(body, exact(body.length), CHUNKED),
  (body) => lie(body, exact(Math.floor(body.length / 2))),
  (body) => lie(body, exact(body.length + 100)),
  (body) => lie(`${body.length.toString(16)}\n${body}\n0\n\n`, CHUNKED),
  (body) => lie(`ffffffffffffffff1\r\n${body}\r\n0\r\n\r\n`, CHUNKED),
  (body) => lie(`${chunks(body)}0\r\nOrigin: ${ORIGIN}\r\n\r\n`, CHUNKED),
  () => lie(SMUGGLED, 'Content-Length: 0'),
  () => lie(`0\r\n\r\n${SMUGGLED}`, 'Content-Length: 5', CHUNKED),
  ...vocabulary.ODD_LENGTHS.map((line) => (body: string) => lie(body, line)),
];

/** Two of them, of which the first has an extension, without the last one, which is empty. */
function chunks(body: string): string {
  const parts = [body.slice(0, 16), body.slice(16)].filter((part) => part !== '');
  return parts.map((part, at) => `${part.length.toString(16)}${at ? '' : ';ext=1'}\r\n${part}\r\n`).join('');
}
