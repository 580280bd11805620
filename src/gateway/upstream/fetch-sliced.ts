/** Fetches a long range slice by slice, so that a listener who stops reading costs one slice and no connection. */

import type { BodyReader, Chunk } from '../http/body-reader.ts';
import type { RequestRecord } from '../record/request-record.ts';
import { Buffered } from './body-modes.ts';
import type { UpstreamCall } from './fetch-upstream.ts';
import { chunksOf, discard, type UpstreamResponse } from './upstream-response.ts';

/** One range with a first byte, in numbers that are exact. @see RFC 9110 section 14.1.2 */
const RANGE = /^bytes=(\d{1,15})-(\d{0,15})$/;
/** The size of the representation, at the end of a `Content-Range`. @see RFC 9110 section 14.4 */
const TOTAL = /\/(\d{1,15})$/;
/** The first response has met the client's conditions; the next ones have to belong to that response. */
const CONDITIONS = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range'];

/** Makes the calls of a request. */
export interface Caller {
  fetch(call: UpstreamCall): Promise<UpstreamResponse>;
  /** Makes a call after the head has been sent, so that a refresh is impossible. */
  fetchMore(call: UpstreamCall): Promise<UpstreamResponse>;
}

/** Bytes from the first to the last one, both included. */
interface Range {
  readonly first: number;
  readonly last: number;
}

/** Names for the log what is wrong with a slice. */
function sliceError(code: string): Error {
  return Object.assign(new Error(code), { name: 'SliceError', code });
}

/** The range that the call asks for, when it is longer than a slice. */
export function longRange({ method, headers }: UpstreamCall, sliceBytes: number): Range | undefined {
  const [, first, last] = RANGE.exec(headers['range'] ?? '') ?? [];
  if (first === undefined || method !== 'GET' || sliceBytes === 0) return undefined;
  const range = { first: Number(first), last: last ? Number(last) : Number.MAX_SAFE_INTEGER };
  return range.last - range.first >= sliceBytes ? range : undefined;
}

/**
 * Asks the upstream for the first slice of the range. The body of the response asks for the next one whenever the last
 * one has been read. If the response cannot be continued in this way, the upstream is asked again as the client has
 * asked.
 */
export async function fetchSliced(
  call: UpstreamCall,
  wanted: Range,
  sliceBytes: number,
  caller: Caller,
  record: RequestRecord,
): Promise<UpstreamResponse> {
  const { first } = wanted;
  const response = await caller.fetch(withRange(call, { first, last: first + sliceBytes - 1 }));
  if (response.status !== 206) return response;
  const { headers, body } = response;
  const total = Number(TOTAL.exec(headers.get('content-range') ?? '')?.[1]);
  const whole = { first, last: Math.min(wanted.last, total - 1) };
  const slice = { first, last: Math.min(first + sliceBytes - 1, whole.last) };
  const isInOrder = headers.get('content-range') === contentRange(slice, total);
  if (isInOrder && slice.last === whole.last) return response;
  const etag = headers.get('etag') ?? '';
  // A weak one does not identify bytes. @see RFC 9110 section 8.8.3
  const isStrong = etag.startsWith('"');
  const begun = body instanceof Uint8Array ? { firstChunk: body, reader: null } : body;
  const readBytes = begun?.firstChunk?.byteLength ?? 0;
  if (!isInOrder || !isStrong || !begun || readBytes > sliceBytes || headers.has('content-encoding')) {
    await discard(response);
    return caller.fetch(call);
  }

  const left = new AbortController();
  const kept = Object.entries(call.headers).filter(([name]) => !CONDITIONS.includes(name));
  const later: UpstreamCall = {
    ...call,
    headers: { ...Object.fromEntries(kept), 'if-range': etag },
    // An upstream that ignores the range is not read to its end.
    bodyMode: new Buffered((bytes) => {
      if (bytes > sliceBytes) throw sliceError('length');
    }),
    isLaterSlice: true,
    signal: left.signal,
  };
  record.slices = 1;
  const chunks = async function* () {
    let missing = sliceBytes - readBytes;
    for await (const chunk of chunksOf(begun.reader)) {
      missing -= chunk.byteLength;
      if (missing < 0) throw sliceError('length');
      yield chunk;
    }
    if (missing > 0) throw sliceError('length');
    for (let next = slice.last + 1; next <= whole.last; next += sliceBytes) {
      const range = { first: next, last: Math.min(next + sliceBytes - 1, whole.last) };
      record.slices = (record.slices ?? 0) + 1;
      yield checked(await caller.fetchMore(withRange(later, range)), range, total, etag);
    }
  };
  const iterator = chunks();
  const reader: BodyReader = {
    async read() {
      const { value } = await iterator.next();
      return value ? { done: false, value } : { done: true };
    },
    async cancel() {
      left.abort();
      await begun.reader?.cancel();
    },
  };
  const continued = new Headers(headers);
  continued.set('content-range', contentRange(whole, total));
  continued.set('content-length', String(whole.last - first + 1));
  return { ...response, headers: continued, body: { ...begun, reader }, isSliced: true };
}

/** Returns the body; throws when the response is not this part of the same representation. */
function checked(
  { status, headers, body }: UpstreamResponse,
  range: Range,
  total: number,
  etag: string,
): Chunk {
  if (status !== 206) throw sliceError(`status ${status}`);
  if (headers.get('etag') !== etag) throw sliceError('etag');
  if (headers.has('content-encoding')) throw sliceError('encoding');
  if (headers.get('content-range') !== contentRange(range, total)) throw sliceError('range');
  if (!(body instanceof Uint8Array) || body.byteLength !== range.last - range.first + 1)
    throw sliceError('length');
  return body;
}

function withRange(call: UpstreamCall, { first, last }: Range): UpstreamCall {
  return { ...call, headers: { ...call.headers, range: `bytes=${first}-${last}` } };
}

function contentRange({ first, last }: Range, total: number): string {
  return `bytes ${first}-${last}/${total}`;
}
