import { expect, it } from 'bun:test';
import fc from 'fast-check';
import { type Body, isStreamed } from '../../src/gateway/http/body.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import { longRange } from '../../src/gateway/upstream/byte-range.ts';
import { fetchSliced } from '../../src/gateway/upstream/fetch-sliced.ts';
import type { UpstreamCall } from '../../src/gateway/upstream/fetch-upstream.ts';
import { SlicedAddresses } from '../../src/gateway/upstream/sliced-addresses.ts';
import type { UpstreamResponse } from '../../src/gateway/upstream/upstream-response.ts';
import { RELAYED } from '../support/unread-body.ts';

const ETAG = '"a"';
const ADDRESS = 'http://upstream.test/v1/track';
const CASES = 20_000;
/** Each byte of a track differs from its neighbours, and from the same byte of another track. */
const trackOf = (size: number, seed = 1) =>
  Uint8Array.from({ length: size }, (_, index) => (index * 31 + seed) % 251);

/** The right response to a range of a track. */
function partsOf(size: number, first: number, last: number) {
  const bytes = trackOf(size).slice(first, last + 1);
  return { status: 206, etag: ETAG, first, last, total: `${size}`, bytes, encoding: '', breaks: false };
}
type Parts = ReturnType<typeof partsOf>;

const status = (code: number) => () => ({ status: code, bytes: new Uint8Array() });
/** With the bytes of another track, which nobody may get. */
const ofAnother =
  (change: Partial<Parts>) =>
  ({ bytes, first }: Parts) => ({ ...change, bytes: trackOf(first + bytes.length, 7).slice(first) });

/** What the upstream does to one of its responses. */
const FAULTS: Readonly<Record<string, (parts: Parts) => Partial<Parts>>> = {
  none: () => ({}),
  'has another ETag': ofAnother({ etag: '"b"' }),
  'has a weak ETag': ofAnother({ etag: `W/${ETAG}` }),
  'has no ETag': ofAnother({ etag: '' }),
  'has another total': ({ total }) => ({ total: `${Number(total) + 1}` }),
  'does not know the total': ofAnother({ total: '*' }),
  'begins one byte later': ({ first, last, bytes }) => ({
    first: first + 1,
    last: last + 1,
    bytes: Uint8Array.of(...bytes.slice(1), 0),
  }),
  'ends one byte earlier': ({ last, bytes }) => ({ last: last - 1, bytes: bytes.slice(0, -1) }),
  'sends one byte less': ({ bytes }) => ({ bytes: bytes.slice(0, -1) }),
  'sends one byte more': ({ bytes }) => ({ bytes: Uint8Array.of(...bytes, 1) }),
  'is encoded': ofAnother({ encoding: 'gzip' }),
  'breaks off': ({ bytes }) => ({ bytes: bytes.slice(0, -1), breaks: true }),
  'has the status 200': status(200),
  'has the status 401': status(401),
  'has the status 429': status(429),
};

/** A body that has been read whole, or one of two chunks, of which the first has been read. */
function bodyOf({ bytes, breaks }: Parts, isBuffered: boolean, firstBytes: number, onEnd: () => void): Body {
  if (isBuffered && breaks) throw new TypeError('reset');
  if (bytes.length === 0) return null;
  if (isBuffered || (bytes.length <= firstBytes && !breaks)) return bytes;
  const rest = { done: false as const, value: bytes.slice(firstBytes) };
  const steps = breaks ? [rest] : [rest, { done: true as const }];
  let isOpen = true;
  const cancel = async () => {
    if (isOpen) onEnd();
    isOpen = false;
  };
  const read = async () => {
    const step = steps.shift();
    if (step?.done !== false) await cancel();
    return step ?? Promise.reject(new TypeError('reset'));
  };
  return { firstChunk: bytes.slice(0, firstBytes), rest: { read, cancel } };
}

/** Only a part says where it belongs. */
function headersOf({ status: code, first, last, total, etag, encoding }: Parts) {
  const range = code === 206 ? `bytes ${first}-${last}/${total}` : '';
  const lines = { 'content-range': range, etag, 'content-encoding': encoding };
  return new Headers(Object.entries(lines).filter(([, value]) => value));
}

/** An upstream with one track. Its first responses have these faults. */
function upstreamOf(size: number, faults: readonly string[], firstBytes: number) {
  const seen = { calls: [] as UpstreamCall[], open: 0 };
  const respond = (call: UpstreamCall): UpstreamResponse => {
    const fault = FAULTS[faults[seen.calls.length] ?? 'none'];
    seen.calls.push(call);
    if (call.headers['range'] === undefined)
      return { status: 200, headers: new Headers(), body: trackOf(size) };
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(call.headers['range'] ?? '') ?? [];
    const first = Number(from);
    if (first >= size) return { status: 416, headers: new Headers(), body: null };
    const right = partsOf(size, first, Math.min(Number(to || size), size - 1));
    const parts: Parts = { ...right, ...fault?.(right) };
    const body = bodyOf(parts, call.bodyMode.isDecoded, firstBytes, () => seen.open--);
    return { status: parts.status, headers: headersOf(parts), body };
  };
  const fetch = async (call: UpstreamCall) => {
    if (call.headers['range'] === undefined) {
      seen.calls.push(call);
      return { status: 200, headers: new Headers(), body: trackOf(size) };
    }
    const response = respond(call);
    if (isStreamed(response.body)) seen.open++;
    return response;
  };
  return { fetch, fetchAfterHead: fetch, seen };
}

function callFor(range?: string): UpstreamCall {
  const headers = { ...(range && { range }), 'if-none-match': '"x"', 'if-range': ETAG };
  return { name: 'proxy', method: 'GET', url: ADDRESS, headers, timeoutMs: 280_000, bodyMode: RELAYED };
}

/** Reads at most so many pieces, and then leaves. Returns the bytes, and how that ended. */
async function read({ body }: UpstreamResponse, most: number, calls: readonly UpstreamCall[]) {
  if (body === null || body instanceof Uint8Array) throw new Error('it is not streamed');
  const bytes = [...(body.firstChunk ?? [])];
  for (let count = 1; count < most; count++) {
    const hasArrived = body.rest?.hasArrived;
    const asked = calls.length;
    const piece = await body.rest?.read().catch(() => undefined);
    // Memory is reserved for what the upstream is asked for.
    if (piece || hasArrived) expect(hasArrived).toBe(calls.length === asked);
    if (!piece) return { bytes, ending: 'broken' } as const;
    if (piece.done) return { bytes, ending: 'whole' } as const;
    bytes.push(...piece.value);
  }
  await body.rest?.cancel();
  return { bytes, ending: 'left' } as const;
}

const anyCase = fc.record({
  size: fc.integer({ min: 1, max: 40 }),
  first: fc.nat(45),
  length: fc.option(fc.nat(45), { nil: undefined }),
  sliceBytes: fc.integer({ min: 1, max: 12 }),
  faults: fc.array(
    fc.oneof({ weight: 3, arbitrary: fc.constant('none') }, fc.constantFrom(...Object.keys(FAULTS))),
    { maxLength: 8 },
  ),
  firstBytes: fc.nat(12),
  pieces: fc.integer({ min: 1, max: 40 }),
});
type Case = typeof anyCase extends fc.Arbitrary<infer Value> ? Value : never;

/** A response that cannot be continued is relayed or given up, and then the upstream is asked as the client did. */
function judgeRelayed({ size, first, faults }: Case, call: UpstreamCall, calls: UpstreamCall[], status = 0) {
  const code = /status (.*)/.exec(faults[0] ?? '')?.[1];
  if (code && first < size) expect([`${status}`, calls.length]).toEqual([code, 1]);
  expect(calls.slice(1)).toEqual(calls.length > 1 ? [call] : []);
}

/** Returns how the sliced body ended; undefined for a response that is relayed as it is. */
async function judge(each: Case) {
  const { size, first, length, sliceBytes, faults, firstBytes, pieces } = each;
  const upstream = upstreamOf(size, faults, firstBytes);
  const call = callFor(`bytes=${first}-${length === undefined ? '' : first + length}`);
  if (!longRange(call, sliceBytes)) return undefined;
  const record = new RequestRecord(new Request('http://gateway.test'));
  const slicing = { sliceBytes, fetcher: upstream, record, addresses: new SlicedAddresses() };
  const response = await fetchSliced(call, slicing).catch(() => undefined);
  const { calls, open } = upstream.seen;
  if (!response?.isSliced) {
    expect([open, record.slices]).toEqual([Number(isStreamed(response?.body ?? null)), undefined]);
    judgeRelayed(each, call, calls, response?.status);
    return undefined;
  }
  const { bytes, ending } = await read(response, pieces, calls);
  expect(record.slices).toBe(calls.length);
  // The later ones are without conditions, of one representation, and within the same deadline.
  const etag = faults[0] === 'has another ETag' ? '"b"' : ETAG;
  const ofSlices = calls.slice(1).map(({ timeoutMs, headers: { range, ...others } }) => [timeoutMs, others]);
  expect(ofSlices).toEqual(ofSlices.map(() => [call.timeoutMs, { 'if-range': etag }]));
  expect(calls.length).toBeLessThanOrEqual(Math.ceil(size / sliceBytes) + 1);
  // What the first response says of the track counts.
  const total = faults[0] === 'has another total' ? size + 1 : size;
  const track = trackOf(size, faults[0] === 'has another ETag' ? 7 : 1);
  const end = Math.min(length === undefined ? total : first + length + 1, total);
  expect(response.status).toBe(206);
  expect(response.headers.get('content-range')).toBe(`bytes ${first}-${end - 1}/${total}`);
  expect(response.headers.get('content-length')).toBe(`${end - first}`);
  expect(response.headers.has('content-encoding')).toBe(false);
  expect(bytes).toEqual([...track.slice(first, first + bytes.length)]);
  if (ending === 'whole') expect(bytes.length).toBe(end - first);
  if (ending === 'left') {
    expect(upstream.seen.open).toBe(0);
    for (const { signal } of calls.slice(1)) expect(signal?.aborted).toBe(true);
  }
  return ending;
}

/** A client that asks for all, of an address that has been played in slices, gets no part and nothing that is said of one. */
async function judgeAll({ size: above, sliceBytes, faults, firstBytes, pieces }: Case) {
  const size = above - 1;
  const upstream = upstreamOf(size, faults, firstBytes);
  const addresses = new SlicedAddresses();
  addresses.note(ADDRESS, 'sliced');
  const call = callFor();
  const record = new RequestRecord(new Request('http://gateway.test'));
  const slicing = { sliceBytes, fetcher: upstream, record, addresses };
  const response = await fetchSliced(call, slicing).catch(() => undefined);
  if (!response) return undefined;
  const { calls, open } = upstream.seen;
  const [first, last] = [calls[0], calls.at(-1)];
  expect(first?.headers).toMatchObject({ 'accept-encoding': 'identity', range: expect.any(String) });
  expect(first?.headers['if-range']).toBeUndefined();
  if (last?.headers['range'] === undefined)
    expect([last, addresses.stateOf(ADDRESS)]).toEqual([call, 'changing']);
  expect([206, 416]).not.toContain(response.status);
  if (response.status !== 200) return undefined;
  expect(response.headers.has('content-range')).toBeFalse();
  if (!response.isSliced) return void expect(open).toBe(Number(isStreamed(response.body)));
  const { bytes, ending } = await read(response, pieces, calls);
  const track = trackOf(size, faults[0] === 'has another ETag' ? 7 : 1);
  expect(bytes).toEqual([...track.slice(0, bytes.length)]);
  if (ending === 'whole') expect(response.headers.get('content-length')).toBe(`${bytes.length}`);
  return ending;
}

it.each([
  ['a range', judge],
  ['all', judgeAll],
])(
  `fetchSliced() gives the upstream's exact bytes of %s or breaks off, in ${CASES} cases`,
  async (_, judgeOne) => {
    const seen = { whole: 0, broken: 0, left: 0 };
    const property = fc.asyncProperty(anyCase, async (each) => {
      const ending = await judgeOne(each);
      if (ending) seen[ending]++;
    });
    await fc.assert(property, { numRuns: CASES, seed: 24 });
    // Otherwise the property would say little.
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(CASES / 50);
  },
);

it('the addresses that are known are bounded: the oldest is forgotten', () => {
  const known = new SlicedAddresses();
  const addresses = Array.from({ length: 1001 }, (_, index) => `http://upstream.test/${index}`);
  const stateOf = (index: number) => (index % 2 === 0 ? 'changing' : 'sliced');
  for (const [index, address] of addresses.entries()) known.note(address, stateOf(index));
  const expected = addresses.map((_, index) => (index === 0 ? undefined : stateOf(index)));
  expect(addresses.map((address) => known.stateOf(address))).toEqual(expected);
});

it.each([
  ['bytes=0-', 4, true],
  ['bytes=0-4', 4, true],
  ...['bytes=0-3', 'bytes=4-3', 'bytes=-10', 'bytes=0-9,20-', 'bytes=9999999999999999-', 'items=0-'].map(
    (range) => [range, 4, false] as const,
  ),
  ['bytes=0-', 0, false],
])('longRange() of %s with slices of %i bytes: %p', (range, sliceBytes, isLong) => {
  expect(longRange(callFor(range), sliceBytes) !== undefined).toBe(isLong);
});
