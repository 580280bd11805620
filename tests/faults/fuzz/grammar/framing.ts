/** Where a body ends: stated correctly, or in one of the ways that request smuggling relies on. */

import fc, { type Arbitrary } from 'fast-check';
import { pick, rarely, words } from './choices.ts';

export interface Framed {
  readonly lines: readonly string[];
  readonly bytes: string;
  /** Whether length and bytes agree. */
  readonly isHonest: boolean;
}

type Framing = (body: string) => Framed;

const CHUNKED = 'Transfer-Encoding: chunked';
const SMUGGLED = 'GET /api/upstream/v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
const LENGTHS = words('-1 +1 0x1 1e1 99999999999999999999 4294967296 007 2097153 1000000000');
const CODINGS = ['identity', 'xchunked', 'chunked, chunked', 'gzip, chunked', '\x0bchunked', 'chunked\x00'];
const ODD_LINES = [
  ...[...LENGTHS, '', ' ', '1 1'].map((length) => `Content-Length: ${length}`),
  ...CODINGS.map((coding) => `Transfer-Encoding: ${coding}`),
  ...['Transfer-Encoding : chunked', 'Transfer-Encoding:\r\n chunked'],
];
const CHUNK_ENDS = [
  '',
  '0\r\n',
  '0',
  'g\r\n',
  '-1\r\n',
  '\r\n',
  '0\n\n',
  '0\r\nOrigin: http://studio.test\r\n\r\n',
];

const exact = (length: number) => `Content-Length: ${length}`;
const LIES: readonly Framing[] = [
  (body) => lie(body),
  (body) => lie(body, exact(body.length), exact(body.length + 1)),
  (body) => lie(body, exact(body.length), exact(body.length)),
  (body) => lie(body, `Content-Length: ${body.length}, ${body.length}`),
  (body) => lie(body, exact(body.length), CHUNKED),
  (body) => lie(body, exact(Math.floor(body.length / 2))),
  (body) => lie(body, exact(body.length + 1)),
  (body) => lie(body, exact(body.length + 100)),
  (body) => lie(`${body.length.toString(16)}\n${body}\n0\n\n`, CHUNKED),
  (body) => lie(`ffffffffffffffff1\r\n${body}\r\n0\r\n\r\n`, CHUNKED),
  () => lie(SMUGGLED, 'Content-Length: 0'),
  () => lie(`0\r\n\r\n${SMUGGLED}`, 'Content-Length: 5', CHUNKED),
];

export function framing(oddity: number): Arbitrary<Framing> {
  const declared = fc.constant((bytes: string) => ({ lines: [exact(bytes.length)], bytes, isHonest: true }));
  const chunked = chunking();
  const inChunks = chunked.map((split) => (body: string) => {
    return { lines: [CHUNKED], bytes: split(body), isHonest: true };
  });
  const oddlyEnded = fc.tuple(chunked, pick(CHUNK_ENDS)).map(([split, end]) => (body: string) => {
    return lie(split(body).slice(0, -5) + end, CHUNKED);
  });
  const withOddLine = pick(ODD_LINES).map((line) => (body: string) => lie(body, line));
  const dishonest = fc.oneof(
    { weight: LIES.length, arbitrary: pick(LIES) },
    { weight: 3, arbitrary: withOddLine },
    { weight: 1, arbitrary: oddlyEnded },
  );
  return rarely(oddity / 4, dishonest, rarely(0.25, inChunks, declared));
}

/** In up to four chunks, some of them with an extension. */
function chunking(): Arbitrary<(body: string) => string> {
  const piece = fc.tuple(fc.nat(100), rarely(0.05, fc.constant(';ext=1'), fc.constant('')));
  return fc.array(piece, { maxLength: 3 }).map((pieces) => (body) => {
    let text = '';
    let rest = body;
    for (const [percent, extension] of [...pieces, [100, ''] as const]) {
      const chunk = rest.slice(0, Math.ceil((rest.length * percent) / 100));
      if (chunk) text += `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n`;
      rest = rest.slice(chunk.length);
    }
    return `${text}0\r\n\r\n`;
  });
}

function lie(bytes: string, ...lines: string[]): Framed {
  return { lines, bytes, isHonest: false };
}
