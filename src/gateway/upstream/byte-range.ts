/** Ranges of bytes, as requests ask for them and responses name them. */

import type { UpstreamCall } from './fetch-upstream.ts';

/** From the first to the last byte, both included. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** One range with a first byte, in numbers that are exact. @see RFC 9110 section 14.1.2 */
const RANGE = /^bytes=(\d{1,15})-(\d{0,15})$/;

const TOTAL = /\/(\d{1,15})$/;

/** The range that the call asks for, when it is longer than a slice. */
export function longRange({ method, headers }: UpstreamCall, sliceBytes: number): ByteRange | undefined {
  const [, first, last] = RANGE.exec(headers['range'] ?? '') ?? [];
  if (first === undefined || method !== 'GET' || sliceBytes === 0) return undefined;
  const range = { first: Number(first), last: last ? Number(last) : Number.MAX_SAFE_INTEGER };
  return lengthOf(range) > sliceBytes ? range : undefined;
}

export function lengthOf({ first, last }: ByteRange): number {
  return last - first + 1;
}

/** The size of the representation, at the end of a `Content-Range`; NaN when it says none. @see RFC 9110 section 14.4 */
export function totalOf(headers: Headers): number {
  return Number(TOTAL.exec(headers.get('content-range') ?? '')?.[1]);
}

export function withRange(call: UpstreamCall, { first, last }: ByteRange): UpstreamCall {
  return { ...call, headers: { ...call.headers, range: `bytes=${first}-${last}` } };
}

export function contentRange({ first, last }: ByteRange, total: number): string {
  return `bytes ${first}-${last}/${total}`;
}
