/** Where a body ends: rightly said, or in one of the ways that request smuggling lives on. */

import type { Random } from '../random.ts';

export interface Framed {
  readonly lines: readonly string[];
  readonly bytes: string;
  /** Whether length and bytes agree. */
  readonly isHonest: boolean;
}

export function framed(random: Random, body: string, oddity: number): Framed {
  if (random.chance(oddity / 4)) return dishonest(random, body);
  return random.chance(0.75)
    ? { lines: [`Content-Length: ${body.length}`], bytes: body, isHonest: true }
    : { lines: ['Transfer-Encoding: chunked'], bytes: chunked(random, body), isHonest: true };
}

function chunked(random: Random, body: string): string {
  let text = '';
  for (let start = 0; start < body.length; ) {
    const piece = body.slice(start, start + random.between(1, Math.max(1, Math.ceil(body.length / 2))));
    text += `${piece.length.toString(16)}${random.chance(0.05) ? ';ext=1' : ''}\r\n${piece}\r\n`;
    start += piece.length;
  }
  return `${text}0\r\n\r\n`;
}

function dishonest(random: Random, body: string): Framed {
  const { length } = body;
  const said = (...lines: string[]) => ({ lines, bytes: body, isHonest: false });
  const chunks = (bytes: string, line = 'Transfer-Encoding: chunked') => ({
    lines: [line],
    bytes,
    isHonest: false,
  });
  const smuggled = 'GET /api/upstream/v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
  return random.make<Framed>(
    () => said(),
    () => said(`Content-Length: ${length}`, `Content-Length: ${length + 1}`),
    () => said(`Content-Length: ${length}`, `Content-Length: ${length}`),
    () => said(`Content-Length: ${length}, ${length}`),
    () => said(`Content-Length: ${length}`, 'Transfer-Encoding: chunked'),
    () =>
      said(
        `Content-Length: ${random.pick(['-1', '+1', '0x1', '1e1', '', ' ', '99999999999999999999', '1 1', '4294967296', '007'])}`,
      ),
    () => said(`Content-Length: ${random.below(length + 1)}`),
    () => said(`Content-Length: ${length + random.between(1, 100)}`),
    () => said(`Content-Length: ${random.pick([2_097_153, 1_000_000_000])}`),
    () =>
      said(
        `Transfer-Encoding: ${random.pick(['identity', 'xchunked', 'chunked, chunked', 'gzip, chunked', '\x0bchunked', 'chunked\x00'])}`,
      ),
    () => said(`Transfer-Encoding : chunked`),
    () => said('Transfer-Encoding:\r\n chunked'),
    () =>
      chunks(
        `${chunked(random, body).slice(0, -5)}${random.pick(['', '0\r\n', '0', 'g\r\n', '-1\r\n', '\r\n', '0\n\n'])}`,
      ),
    () => chunks(`${length.toString(16)}\n${body}\n0\n\n`),
    () => chunks(`ffffffffffffffff1\r\n${body}\r\n0\r\n\r\n`),
    () => chunks(`${chunked(random, body).slice(0, -2)}Origin: http://studio.test\r\n\r\n`),
    () => ({ lines: ['Content-Length: 0'], bytes: smuggled, isHonest: false }),
    () => ({
      lines: ['Content-Length: 5', 'Transfer-Encoding: chunked'],
      bytes: `0\r\n\r\n${smuggled}`,
      isHonest: false,
    }),
  );
}
