/** Fetches a long range slice by slice, so that a listener who stops reading costs one slice and no connection. */

import type { BodyReader, Chunk } from '../http/body-reader.ts';
import { BEFORE_IDLE_TIMEOUT_MS } from '../http/idle-timeout.ts';
import type { CallerRecord, RequestRecord } from '../record/request-record.ts';
import type { UpstreamCall } from './fetch-upstream.ts';
import { discard, type UpstreamResponse } from './upstream-response.ts';

/** One range with a first byte, in numbers that are exact. @see RFC 9110 section 14.1.2 */
const RANGE = /^bytes=(\d{1,15})-(\d{0,15})$/;
/** A range of a representation whose size is known. @see RFC 9110 section 14.4 */
const CONTENT_RANGE = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/;
/** The first response has met the client's conditions; the next ones have to belong to that response. */
const CONDITIONS = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range'];

/** Makes the calls of a request. */
export interface Caller {
  fetch(call: UpstreamCall): Promise<UpstreamResponse>;
  /** Makes a call after the head has been sent, so that a refresh is impossible. */
  fetchMore(call: UpstreamCall, record: CallerRecord): Promise<UpstreamResponse>;
}

/** Bytes from the first to the last one, both included. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

/** Names for the log what is wrong with a slice. */
class SliceError extends Error {
  override readonly name = 'SliceError';
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** The range that the call asks for, when it is longer than a slice. */
export function longRange({ method, headers }: UpstreamCall, sliceBytes: number): Range | undefined {
  const { range: header } = headers;
  if (header === undefined || method !== 'GET' || sliceBytes === 0) return undefined;
  const [, first, last] = RANGE.exec(header) ?? [];
  if (first === undefined) return undefined;
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
  const slice = { first: wanted.first, last: wanted.first + sliceBytes - 1 };
  const response = await caller.fetch(withRange(call, slice));
  if (response.status !== 206) return response;
  const { headers } = response;
  const [, first, last, total] = CONTENT_RANGE.exec(headers.get('content-range') ?? '')?.map(Number) ?? [];
  const whole = { first: wanted.first, last: Math.min(wanted.last, (total ?? 0) - 1) };
  const isInOrder = first === slice.first && last === Math.min(slice.last, whole.last);
  if (isInOrder && last === whole.last) return response;
  const etag = strongEtag(headers);
  const { body } = response;
  const isEncoded = headers.has('content-encoding');
  if (!isInOrder || total === undefined || etag === undefined || isEncoded || body === null) {
    await discard(response);
    return caller.fetch(call);
  }
  const continued = new Headers(headers);
  continued.set('content-range', `bytes ${whole.first}-${whole.last}/${total}`);
  continued.set('content-length', String(whole.last - whole.first + 1));
  const begun = body instanceof Uint8Array ? { firstChunk: body, reader: null } : body;
  record.slices = 1;
  const known = {
    ...{ caller, etag, total, sliceBytes, record },
    // While a slice is awaited the client gets nothing.
    timeoutMs: Math.min(call.timeoutMs, BEFORE_IDLE_TIMEOUT_MS),
    call: { ...call, headers: { ...withoutConditions(call.headers), 'if-range': etag } },
    callerRecord: withoutCalls(record),
  };
  const reader = new SlicedReader(begun.reader, begun.firstChunk?.byteLength ?? 0, whole, known);
  return { ...response, headers: continued, body: { ...begun, reader }, isSliced: true };
}

interface Known {
  readonly call: UpstreamCall;
  readonly caller: Caller;
  readonly etag: string;
  readonly total: number;
  readonly sliceBytes: number;
  readonly timeoutMs: number;
  readonly record: RequestRecord;
  readonly callerRecord: CallerRecord;
}

class SlicedReader implements BodyReader {
  readonly #known: Known;
  readonly #last: number;
  readonly #firstSliceEnd: number;
  readonly #left = new AbortController();
  /** Of the first slice, whose chunks are passed on as they arrive. */
  #begun: BodyReader | null;
  /** The next byte. */
  #next: number;

  constructor(begun: BodyReader | null, readBytes: number, { first, last }: Range, known: Known) {
    this.#known = known;
    this.#begun = begun;
    this.#next = first + readBytes;
    this.#firstSliceEnd = first + known.sliceBytes;
    this.#last = last;
  }

  async read(): ReturnType<BodyReader['read']> {
    const read = await this.#begun?.read();
    if (read && !read.done) {
      this.#next += read.value.byteLength;
      if (this.#next > this.#firstSliceEnd) throw new SliceError('length');
      return read;
    }
    this.#begun = null;
    if (this.#next < this.#firstSliceEnd) throw new SliceError('length');
    if (this.#next > this.#last) return { done: true, value: undefined };
    const value = await this.#slice();
    this.#next += value.byteLength;
    return { done: false, value };
  }

  async cancel(): Promise<void> {
    this.#left.abort();
    await this.#begun?.cancel();
  }

  /** @throws SliceError when the response is not the next part of the same representation */
  async #slice(): Promise<Chunk> {
    const { call, caller, etag, total, sliceBytes, timeoutMs, record, callerRecord } = this.#known;
    const range = { first: this.#next, last: Math.min(this.#next + sliceBytes - 1, this.#last) };
    record.slices = (record.slices ?? 0) + 1;
    const next: UpstreamCall = {
      ...withRange(call, range),
      bodyMode: 'buffered',
      timeoutMs,
      signal: this.#left.signal,
      // An upstream that ignores the range is not read to its end.
      admitLarge: (bytes) => {
        if (bytes > sliceBytes) throw new SliceError('length');
      },
    };
    const { status, headers, body } = await caller.fetchMore(next, callerRecord);
    if (status !== 206) throw new SliceError(`status ${status}`);
    if (strongEtag(headers) !== etag) throw new SliceError('etag');
    if (headers.has('content-encoding')) throw new SliceError('encoding');
    if (headers.get('content-range') !== `bytes ${range.first}-${range.last}/${total}`)
      throw new SliceError('range');
    if (!(body instanceof Uint8Array) || body.byteLength !== range.last - range.first + 1)
      throw new SliceError('length');
    return body;
  }
}

/** Log, metrics and traces have the first call, of which the slices are parts. */
function withoutCalls({ headers, clientAddressHeaders }: RequestRecord): CallerRecord {
  return {
    headers,
    clientAddressHeaders,
    span: undefined,
    get calls() {
      return [];
    },
  };
}

function withRange(call: UpstreamCall, range: Range): UpstreamCall {
  return { ...call, headers: { ...call.headers, range: rangeHeader(range) } };
}

function rangeHeader({ first, last }: Range): string {
  return `bytes=${first}-${last}`;
}

function withoutConditions(headers: UpstreamCall['headers']): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !CONDITIONS.includes(name)));
}

/** @see RFC 9110 section 8.8.3: a weak one does not identify bytes */
function strongEtag(headers: Headers): string | undefined {
  const etag = headers.get('etag');
  return etag?.startsWith('"') ? etag : undefined;
}
