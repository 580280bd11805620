/** Puts the requests of a connection together from the vocabulary. */

import fc, { type Arbitrary } from 'fast-check';
import { ORIGIN } from '../../support/world.ts';
import { few, items, maybe, PLACEHOLDER, pick, rarely } from './choices.ts';
import { type RichResponse, richResponse } from './responses.ts';
import * as vocabulary from './vocabulary.ts';

export interface FuzzRequest {
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

/** Bun closes the connection on a method that it does not know, and sometimes on a CONNECT, without a response. */
const KNOWN_METHODS = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|PROPFIND)$/;
const ALLOWED_LINE = new RegExp(
  `(?:^|\\n)origin:[ \\t]*${ORIGIN.replaceAll('.', '\\.')}[ \\t]*\\r?(?:\\n|$)`,
  'i',
);

export function requestsOfConnection(): Arbitrary<readonly FuzzRequest[]> {
  return fc.array(fc.oneof(...[0, 0.1, 0.1, 0.25, 0.25, 0.5].map(request)), { minLength: 1, maxLength: 5 });
}

function request(oddity: number): Arbitrary<FuzzRequest> {
  return fc.tuple(written(oddity), cuts(), richResponse()).map(([{ bytes, isFramed }, cutsOf, response]) => {
    const [head = ''] = bytes.split('\r\n\r\n', 1);
    const isOnce = head.split('\r\n').filter((line) => /^origin[ \t]*:/i.test(line)).length === 1;
    return {
      ...{ bytes, isFramed, response },
      mayPass: isOnce && ALLOWED_LINE.test(head),
      cuts: cutsOf(bytes.length),
    };
  });
}

/** @param oddity how likely each part is odd; at 0 the request is one that the studio could send */
function written(oddity: number): Arbitrary<Written> {
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
    frame: framing(oddity),
    alwaysBody: maybe(oddity / 4, fc.constant(true)),
  };
  return fc.record(parts).map(({ start: [method, target], version, lines, type, frame, ...parts }) => {
    const host = target.includes('/api/health') ? parts.hostForHealth : parts.host;
    const all = [host, ...lines];
    const framed = frame(target.includes('/auth/') ? parts.signIn : parts.generation);
    const hasBody = parts.alwaysBody.length > 0 || ['POST', 'PUT', 'PATCH'].includes(method);
    if (hasBody) all.push(`Content-Type: ${type}`, ...framed.lines);
    const head = `${method} ${target} ${version}\r\n${all.join('\r\n')}\r\n\r\n`;
    return {
      bytes: hasBody ? head + framed.bytes : head,
      isFramed: KNOWN_METHODS.test(method) && (!hasBody || framed.isHonest),
    };
  });
}

/** Method and target. */
function start(oddity: number): Arbitrary<readonly [method: string, target: string]> {
  const method = pick(vocabulary.METHODS);
  const path = rarely(oddity, fc.oneof(...vocabulary.ODD_PATHS.map(pick)), pick(vocabulary.PATHS));
  const prefix = rarely(oddity / 3, pick(vocabulary.ODD_PREFIXES), fc.constant(vocabulary.PROXY));
  const end = rarely(oddity / 2, pick(vocabulary.ENDS), fc.constant(''));
  const proxied = fc.tuple(
    method,
    fc.tuple(prefix, path, end).map((each) => each.join('')),
  );
  const route = pick(vocabulary.ROUTES).map((each) => {
    const [method = '', path = ''] = each.split(' ');
    return [method, path] as [string, string];
  });
  const odd = fc.tuple(method, pick(vocabulary.ODD_TARGETS));
  const query = fc.nat(8).map((page) => `?q=${PLACEHOLDER}&page=${page}`);
  return fc
    .record({
      aimed: fc.oneof(rarely(oddity / 2, odd, route), proxied),
      other: maybe(oddity, pick([...vocabulary.METHODS, ...vocabulary.ODD_METHODS])),
      before: rarely(oddity / 4, pick(vocabulary.ODD_STARTS), fc.constant('')),
      search: rarely(0.4, query, fc.constant('')),
    })
    .map(({ aimed: [method, target], other, before, search }) => [
      other[0] ?? method,
      before + target + search,
    ]);
}

/** Every line but the host and those that say where the body ends. */
function lines(oddity: number): Arbitrary<readonly string[]> {
  const origin = rarely(oddity / 2, pick(vocabulary.ODD_ORIGINS), pick(vocabulary.ORIGINS));
  const value = (usual: readonly string[]) => rarely(oddity / 2, pick(vocabulary.ODD_TOKENS), pick(usual));
  const cookies = fc.tuple(
    maybe(0.8, value(vocabulary.ACCESS)).map((each) => each.map((token) => `svc_music_access=${token}`)),
    maybe(0.7, value(vocabulary.REFRESH)).map((each) => each.map((token) => `svc_music_refresh=${token}`)),
    few(oddity / 2, pick(vocabulary.OTHER_COOKIES)),
  );
  const separator = rarely(oddity / 5, pick([';', '\r\nCookie: ']), fc.constant('; '));
  const cookie = fc.tuple(cookies, separator).map(([cookies, separator]) => {
    return cookies.flat().length ? [`Cookie: ${cookies.flat().join(separator)}`] : [];
  });
  const lines = fc.tuple(
    origin,
    cookie,
    few(0.4, pick(vocabulary.LINES)),
    few(oddity, pick(vocabulary.ODD_LINES)),
  );
  const turn = rarely(oddity, fc.nat(9), fc.constant(0));
  return fc.tuple(lines, turn).map(([parts, at]) => {
    const all = parts.flat();
    return [...all.slice(at), ...all.slice(0, at)];
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
  () => lie(SMUGGLED, 'Content-Length: 0'),
  () => lie(`0\r\n\r\n${SMUGGLED}`, 'Content-Length: 5', CHUNKED),
];
/** What stands in the place of the last chunk. */
const CHUNK_ENDS = ['', '0\r\n', '0', 'g\r\n', '-1\r\n', '\r\n', '0\n\n', `0\r\nOrigin: ${ORIGIN}\r\n\r\n`];
const LENGTHS = items(`Content-Length: -1 | Content-Length: +1 | Content-Length: 0x1 | Content-Length: 1e1
  Content-Length: 99999999999999999999 | Content-Length: 4294967296 | Content-Length: 007 | Content-Length:
  Content-Length: 2097153 | Content-Length: 1 1 | Transfer-Encoding: identity | Transfer-Encoding: xchunked
  Transfer-Encoding: chunked, chunked | Transfer-Encoding: gzip, chunked | Transfer-Encoding: \x0bchunked
  Transfer-Encoding:\r\n chunked`);
const ODD_FRAMINGS: readonly Framing[] = [
  ...CHUNK_ENDS.map((end) => (body: string) => lie(chunks(body, [2]) + end, CHUNKED)),
  ...LENGTHS.map((length) => (body: string) => lie(body, length)),
];

function framing(oddity: number): Arbitrary<Framing> {
  const declared: Framing = (bytes) => ({ lines: [exact(bytes.length)], bytes, isHonest: true });
  const inChunks = fc.array(fc.nat(300), { maxLength: 3 }).map((sizes): Framing => {
    return (body) => ({ lines: [CHUNKED], bytes: `${chunks(body, sizes)}0\r\n\r\n`, isHonest: true });
  });
  return rarely(
    oddity / 4,
    rarely(0.3, pick(ODD_FRAMINGS), pick(LIES)),
    rarely(0.25, inChunks, fc.constant(declared)),
  );
}

/** Without the last chunk. Some have an extension. */
function chunks(body: string, [size, ...sizes]: readonly number[]): string {
  if (body === '') return '';
  const chunk = body.slice(0, size || undefined);
  const extension = size && size % 16 === 0 ? ';ext=1' : '';
  return `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n${chunks(body.slice(chunk.length), sizes)}`;
}

function cuts(): Arbitrary<(length: number) => number[]> {
  const some = fc.array(fc.nat(1000), { minLength: 1, maxLength: 8, size: 'max' });
  return rarely(0.3, some, fc.constant([])).map((shares) => (length) => {
    return shares.map((share) => Math.floor((share * length) / 1000)).toSorted((a, b) => a - b);
  });
}
