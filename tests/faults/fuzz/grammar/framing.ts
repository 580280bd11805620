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
const LENGTHS = [...words('-1 +1 0x1 1e1 99999999999999999999 4294967296 007'), '', ' ', '1 1'];
const CODINGS = ['identity', 'xchunked', 'chunked, chunked', 'gzip, chunked', '\x0bchunked', 'chunked\x00'];

export function framing(oddity: number): Arbitrary<Framing> {
  const declared = fc.constant<Framing>((bytes) => ({
    lines: [`Content-Length: ${bytes.length}`],
    bytes,
    isHonest: true,
  }));
  const inChunks = chunking().map(
    (split): Framing =>
      (body) => ({
        lines: [CHUNKED],
        bytes: split(body),
        isHonest: true,
      }),
  );
  return rarely(oddity / 4, dishonest(), rarely(0.25, inChunks, declared));
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

function dishonest(): Arbitrary<Framing> {
  const declaring = (...linesOf: readonly ((length: number) => string)[]) =>
    fc.constant<Framing>((bytes) => lie(bytes, ...linesOf.map((each) => each(bytes.length))));
  const saying = (lines: Arbitrary<string>) =>
    lines.map(
      (line): Framing =>
        (bytes) =>
          lie(bytes, line),
    );
  const exact = (length: number) => `Content-Length: ${length}`;
  const ends = pick([
    '',
    '0\r\n',
    '0',
    'g\r\n',
    '-1\r\n',
    '\r\n',
    '0\n\n',
    '0\r\nOrigin: http://studio.test\r\n\r\n',
  ]);
  return fc.oneof(
    declaring(),
    declaring(exact, (length) => exact(length + 1)),
    declaring(exact, exact),
    declaring((length) => `Content-Length: ${length}, ${length}`),
    declaring(exact, () => CHUNKED),
    declaring((length) => exact(Math.floor(length / 2))),
    fc.integer({ min: 1, max: 100 }).map(
      (more): Framing =>
        (bytes) =>
          lie(bytes, exact(bytes.length + more)),
    ),
    saying(pick([...LENGTHS, '2097153', '1000000000']).map((length) => `Content-Length: ${length}`)),
    saying(pick(CODINGS).map((coding) => `Transfer-Encoding: ${coding}`)),
    saying(pick(['Transfer-Encoding : chunked', 'Transfer-Encoding:\r\n chunked'])),
    fc.tuple(chunking(), ends).map(
      ([split, end]): Framing =>
        (body) =>
          lie(split(body).slice(0, -5) + end, CHUNKED),
    ),
    fc.constant<Framing>((body) => lie(`${body.length.toString(16)}\n${body}\n0\n\n`, CHUNKED)),
    fc.constant<Framing>((body) => lie(`ffffffffffffffff1\r\n${body}\r\n0\r\n\r\n`, CHUNKED)),
    fc.constant<Framing>(() => lie(SMUGGLED, 'Content-Length: 0')),
    fc.constant<Framing>(() => lie(`0\r\n\r\n${SMUGGLED}`, 'Content-Length: 5', CHUNKED)),
  );
}

function lie(bytes: string, ...lines: string[]): Framed {
  return { lines, bytes, isHonest: false };
}
