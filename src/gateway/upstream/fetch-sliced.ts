/** Fetches a long range, or all, slice by slice, so that a listener who stops reading costs one slice and no connection. */

import type { BodyReader, Chunk } from '../http/body-reader.ts';
import type { RequestRecord } from '../record/request-record.ts';
import { Buffered } from './body-modes.ts';
import { type ByteRange, contentRange, lengthOf, longRange, totalOf, withRange } from './byte-range.ts';
import type { UpstreamCall } from './fetch-upstream.ts';
import type { SlicedAddresses } from './sliced-addresses.ts';
import { cancelBody, type UpstreamResponse } from './upstream-response.ts';

/** Of a slice. The first one is passed on as it arrives, so its rest would wait in Bun's buffers for a listener who stops. */
const FIRST_SHARE = 1 / 4;

/** Only the first slice is asked for with these. The others have to belong to the same representation instead. */
const CONDITIONS = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range'];

/** Waits that a player bridges from its buffer: up to 10 s. @see RFC 9110 section 10.2.3 */
const SHORT_WAIT = /^(?:\d|10)$/;

/** Makes the calls of a request. */
export interface Fetcher {
  fetch(call: UpstreamCall): Promise<UpstreamResponse>;
  /** A refresh is impossible then. */
  fetchAfterHead(call: UpstreamCall): Promise<UpstreamResponse>;
}

/** A range of one representation, of which the first slice is being read. */
interface BegunRange {
  readonly whole: ByteRange;
  /** The size of the representation, and its strong ETag. */
  readonly total: number;
  readonly etag: string;
  /** The rest of the first slice; null when it has been read. */
  readonly rest: BodyReader | null;
  readonly restBytes: number;
  /** Where the next slice begins. */
  readonly next: number;
}

/** What the calls of one response have in common. */
interface Slicing {
  /** The most that is asked for at a time; 0 for everything. */
  readonly sliceBytes: number;
  readonly fetcher: Fetcher;
  readonly record: RequestRecord;
  readonly addresses: SlicedAddresses;
}

/** Makes the call, in slices if it asks for a long range, or for all of an address that has been played in slices. */
export function fetchSliced(call: UpstreamCall, slicing: Slicing): Promise<UpstreamResponse> {
  const { sliceBytes, fetcher, addresses } = slicing;
  const state = addresses.stateOf(call.url);
  const range = longRange(call, sliceBytes);
  if (range && state !== 'changing') return fetchRange(call, range, slicing);
  const isOfAll = call.method === 'GET' && call.headers['range'] === undefined;
  return isOfAll && state === 'sliced' ? fetchAll(call, slicing) : fetcher.fetch(call);
}

/** Asks for all as a player does. If the upstream does not give a range, the client's own request is sent. */
async function fetchAll(call: UpstreamCall, slicing: Slicing): Promise<UpstreamResponse> {
  const { 'if-range': _, ...headers } = call.headers;
  const ranged = { ...call, headers: { ...headers, range: 'bytes=0-', 'accept-encoding': 'identity' } };
  const response = await fetchRange(ranged, { first: 0, last: Number.MAX_SAFE_INTEGER }, slicing);
  const { status } = response;
  // No range of an empty representation can be had.
  if (status !== 206 && status !== 416) return response;
  const all = new Headers(response.headers);
  const total = totalOf(all);
  if (status === 206 && all.get('content-range') === contentRange({ first: 0, last: total - 1 }, total)) {
    all.delete('content-range');
    return { ...response, status: 200, headers: all };
  }
  await cancelBody(response);
  slicing.addresses.note(call.url, 'changing');
  return slicing.fetcher.fetch(call);
}

/**
 * Asks the upstream for the first slice of the range. The body of the response asks for the next one whenever the last
 * one has been read. A first response that is no 206, or is all of the range, is returned as it is. A 206 that cannot be
 * continued is discarded, and the upstream is asked for the whole range.
 */
async function fetchRange(
  call: UpstreamCall,
  wanted: ByteRange,
  slicing: Slicing,
): Promise<UpstreamResponse> {
  const { sliceBytes, fetcher, record, addresses } = slicing;
  const { first } = wanted;
  const firstBytes = Math.ceil(sliceBytes * FIRST_SHARE);
  const asked = { first, last: first + firstBytes - 1 };
  const response = await fetcher.fetch(withRange(call, asked));
  if (response.status !== 206) return response;
  const { headers, body } = response;
  const total = totalOf(headers);
  const whole = { first, last: Math.min(wanted.last, total - 1) };
  const slice = { first, last: Math.min(asked.last, whole.last) };
  const isInOrder = headers.get('content-range') === contentRange(slice, total);
  if (isInOrder && slice.last === whole.last) return response;
  const etag = headers.get('etag') ?? '';
  // A weak one does not identify bytes. @see RFC 9110 section 8.8.3
  const isStrong = etag.startsWith('"');
  const begun = body instanceof Uint8Array ? { firstChunk: body, rest: null } : body;
  const restBytes = firstBytes - (begun?.firstChunk?.byteLength ?? 0);
  if (!isInOrder || !isStrong || !begun || restBytes < 0 || headers.has('content-encoding')) {
    await cancelBody(response);
    return fetcher.fetch(call);
  }
  addresses.note(call.url, 'sliced');
  record.slices = 1;
  const range = { whole, total, etag, rest: begun.rest, restBytes, next: asked.last + 1 };
  const rest = new SliceReader(range, call, slicing);
  const continued = new Headers(headers);
  continued.set('content-range', contentRange(whole, total));
  continued.set('content-length', String(lengthOf(whole)));
  return { ...response, headers: continued, body: { ...begun, rest }, isSliced: true };
}

/** Reads the rest of the first slice, and then asks the upstream for one slice after the other. */
class SliceReader implements BodyReader {
  readonly #range: BegunRange;
  readonly #call: UpstreamCall;
  readonly #slicing: Slicing;
  readonly #cancelled = new AbortController();
  #rest: BodyReader | null;
  #restBytes: number;
  #next: number;

  constructor(range: BegunRange, call: UpstreamCall, slicing: Slicing) {
    this.#range = range;
    this.#slicing = slicing;
    this.#rest = range.rest;
    this.#restBytes = range.restBytes;
    this.#next = range.next;
    const kept = Object.entries(call.headers).filter(([name]) => !CONDITIONS.includes(name));
    this.#call = {
      ...call,
      headers: { ...Object.fromEntries(kept), 'if-range': range.etag },
      // An upstream that ignores the range is not read to its end.
      bodyMode: new Buffered((bytes) => {
        if (bytes > slicing.sliceBytes) throw this.#mismatch('length');
      }),
      isLaterSlice: true,
      // Not the client's: a cut-off by the gateway has to end the slice, too.
      signal: this.#cancelled.signal,
    };
  }

  get hasArrived(): boolean {
    // The read after the last slice only finds the end.
    return this.#restBytes > 0 || this.#next > this.#range.whole.last;
  }

  async read(): ReturnType<BodyReader['read']> {
    if (this.#rest || this.#restBytes > 0) {
      const value = (await this.#rest?.read())?.value;
      this.#restBytes -= value?.byteLength ?? 0;
      if (value ? this.#restBytes < 0 : this.#restBytes > 0) throw sliceError('length');
      if (value) return { done: false, value };
      this.#rest = null;
    }
    const { whole } = this.#range;
    if (this.#next > whole.last) return { done: true };
    const last = Math.min(this.#next + this.#slicing.sliceBytes - 1, whole.last);
    const slice = { first: this.#next, last };
    try {
      const value = await this.#fetchSlice(slice);
      this.#next = slice.last + 1;
      return { done: false, value };
    } catch (cause) {
      if (!this.#cancelled.signal.aborted) this.#slicing.addresses.noteBroken(this.#call.url);
      throw cause;
    }
  }

  async cancel(): Promise<void> {
    this.#cancelled.abort();
    await this.#rest?.cancel();
  }

  /** Throws when the response is not this slice of the same representation. */
  async #fetchSlice(slice: ByteRange): Promise<Chunk> {
    const { total, etag } = this.#range;
    let response = await this.#fetch(slice);
    const wait = response.headers.get('retry-after') ?? '';
    // Once, because it is about the gateway's pace and not the player's.
    if (response.status === 429 && SHORT_WAIT.test(wait)) {
      await Bun.sleep(Number(wait) * 1000);
      response = await this.#fetch(slice);
    }
    const { status, headers, body } = response;
    if (status === 200 || status === 416) throw this.#mismatch(`status ${status}`);
    if (status !== 206) throw sliceError(`status ${status}`);
    if (headers.get('etag') !== etag) throw this.#mismatch('etag');
    if (headers.has('content-encoding')) throw this.#mismatch('encoding');
    if (headers.get('content-range') !== contentRange(slice, total)) throw this.#mismatch('range');
    if (!(body instanceof Uint8Array) || body.byteLength !== lengthOf(slice)) throw this.#mismatch('length');
    return body;
  }

  #fetch(slice: ByteRange): Promise<UpstreamResponse> {
    const { record, fetcher } = this.#slicing;
    record.slices = (record.slices ?? 0) + 1;
    return fetcher.fetchAfterHead(withRange(this.#call, slice));
  }

  #mismatch(code: string): Error {
    this.#slicing.addresses.note(this.#call.url, 'changing');
    return sliceError(code);
  }
}

/** Names for the log what is wrong with a slice. */
function sliceError(code: string): Error {
  return Object.assign(new Error(code), { name: 'SliceError', code });
}
