import { describe, expect, it } from 'bun:test';
import fc from 'fast-check';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import { STREAMED } from '../../src/gateway/upstream/body-modes.ts';
import { longRange } from '../../src/gateway/upstream/byte-range.ts';
import { fetchSliced } from '../../src/gateway/upstream/fetch-sliced.ts';
import type { UpstreamCall } from '../../src/gateway/upstream/fetch-upstream.ts';
import type { UpstreamResponse } from '../../src/gateway/upstream/upstream-response.ts';

const ETAG = '"a"';
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

/** What the upstream does to one of its responses. */
const FAULTS = {
  none: () => ({}),
  'has another ETag': ({ bytes, first }) => ({
    etag: '"b"',
    bytes: trackOf(first + bytes.length, 7).slice(first),
  }),
  'has a weak ETag': () => ({ etag: `W/${ETAG}` }),
  'has no ETag': () => ({ etag: '' }),
  'has another total': ({ total }) => ({ total: `${Number(total) + 1}` }),
  'does not know the total': () => ({ total: '*' }),
  'begins one byte later': ({ first, last, bytes }) => ({
    first: first + 1,
    last: last + 1,
    bytes: Uint8Array.of(...bytes.slice(1), 0),
  }),
  'ends one byte earlier': ({ last, bytes }) => ({ last: last - 1, bytes: bytes.slice(0, -1) }),
  'sends one byte less': ({ bytes }) => ({ bytes: bytes.slice(0, -1) }),
  'sends one byte more': ({ bytes }) => ({ bytes: Uint8Array.of(...bytes, 1) }),
  'is encoded': () => ({ encoding: 'gzip' }),
  'breaks off': ({ bytes }) => ({ bytes: bytes.slice(0, -1), breaks: true }),
  'has the status 200': status(200),
  'has the status 401': status(401),
} satisfies Record<string, (parts: Parts) => Partial<Parts>>;
type Fault = keyof typeof FAULTS;
const NAMES = Object.keys(FAULTS).filter((name): name is Fault => Object.hasOwn(FAULTS, name));

/** An upstream with one track. Its first responses have these faults, and each body has two chunks. */
function upstreamOf(size: number, faults: readonly Fault[], firstBytes: number) {
  const seen = { calls: [] as UpstreamCall[], cancelled: 0 };
  const fetch = async (call: UpstreamCall): Promise<UpstreamResponse> => {
    const fault = FAULTS[faults[seen.calls.length] ?? 'none'];
    seen.calls.push(call);
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(call.headers['range'] ?? '') ?? [];
    const first = Number(from);
    if (first >= size) return { status: 416, headers: new Headers(), body: null };
    const right = partsOf(size, first, Math.min(Number(to || size), size - 1));
    const { bytes, breaks, ...parts }: Parts = { ...right, ...fault(right) };
    const lines = {
      'content-range': `bytes ${parts.first}-${parts.last}/${parts.total}`,
      etag: parts.etag,
      'content-encoding': parts.encoding,
    };
    const headers = new Headers(Object.entries(lines).filter(([, value]) => value));
    const isBuffered = call.bodyMode.isDecoded;
    if (isBuffered && breaks) throw new TypeError('reset');
    const rest = { done: false as const, value: bytes.slice(firstBytes) };
    const steps = breaks ? [rest] : [rest, { done: true as const }];
    const read = async () => steps.shift() ?? Promise.reject(new TypeError('reset'));
    const cancel = async () => void seen.cancelled++;
    const body = isBuffered ? bytes : { firstChunk: bytes.slice(0, firstBytes), reader: { read, cancel } };
    return { status: parts.status, headers, body: bytes.length ? body : null };
  };
  return { fetch, fetchMore: fetch, seen };
}

function callFor(range: string): UpstreamCall {
  const headers = { range, 'if-none-match': '"x"', 'if-range': ETAG };
  const url = 'http://upstream.test/v1/track';
  return { name: 'proxy', method: 'GET', url, headers, timeoutMs: 280_000, bodyMode: STREAMED };
}

/** Reads at most so many pieces, and returns the bytes and whether they came to an end. */
async function read({ body }: UpstreamResponse, pieces = Number.POSITIVE_INFINITY) {
  if (body === null || body instanceof Uint8Array) return { bytes: [...(body ?? [])], isWhole: true };
  const bytes = [...(body.firstChunk ?? [])];
  for (let count = 1; count < pieces; count++) {
    const piece = await body.reader?.read().catch(() => undefined);
    if (!piece) return { bytes, isWhole: false };
    if (piece.done) return { bytes, isWhole: true };
    bytes.push(...piece.value);
  }
  await body.reader?.cancel();
  return { bytes, isWhole: false };
}

/** Asks for `bytes=1-` of 10 bytes in slices of 4. */
async function askForNine(faults: readonly Fault[] = []) {
  const upstream = upstreamOf(10, faults, 2);
  const record = new RequestRecord(new Request('http://gateway.test'));
  const wanted = { first: 1, last: Number.MAX_SAFE_INTEGER };
  const response = await fetchSliced(callFor('bytes=1-'), wanted, 4, upstream, record);
  return { record, response, seen: upstream.seen };
}

const anyCase = fc.record({
  size: fc.integer({ min: 1, max: 40 }),
  first: fc.nat(45),
  length: fc.option(fc.nat(45), { nil: undefined }),
  sliceBytes: fc.integer({ min: 1, max: 12 }),
  faults: fc.array(
    fc.oneof({ weight: 3, arbitrary: fc.constant('none' as const) }, fc.constantFrom(...NAMES)),
    { maxLength: 8 },
  ),
  firstBytes: fc.nat(12),
  pieces: fc.integer({ min: 1, max: 40 }),
});
type Case = typeof anyCase extends fc.Arbitrary<infer Value> ? Value : never;

/** Returns whether the sliced body came to its end; undefined for a response that is relayed as it is. */
async function judge({ size, first, length, sliceBytes, faults, firstBytes, pieces }: Case) {
  const upstream = upstreamOf(size, faults, firstBytes);
  const call = callFor(`bytes=${first}-${length === undefined ? '' : first + length}`);
  const wanted = longRange(call, sliceBytes);
  if (!wanted) return undefined;
  const record = new RequestRecord(new Request('http://gateway.test'));
  const response = await fetchSliced(call, wanted, sliceBytes, upstream, record).catch(() => undefined);
  const { calls } = upstream.seen;
  if (!response?.isSliced) {
    const code = /status (.*)/.exec(faults[0] ?? '')?.[1];
    if (code && first < size) expect([`${response?.status}`, calls.length]).toEqual([code, 1]);
    expect(calls.length).toBeLessThanOrEqual(2);
    return undefined;
  }
  const { bytes, isWhole } = await read(response, pieces);
  expect(calls.length).toBeLessThanOrEqual(Math.ceil(size / sliceBytes) + 1);
  // What the first response says of the track counts.
  const total = faults[0] === 'has another total' ? size + 1 : size;
  const track = trackOf(size, faults[0] === 'has another ETag' ? 7 : 1);
  const end = Math.min(length === undefined ? total : first + length + 1, total);
  expect(response.status).toBe(206);
  expect(response.headers.get('content-range')).toBe(`bytes ${first}-${end - 1}/${total}`);
  expect(response.headers.get('content-length')).toBe(`${end - first}`);
  expect(bytes).toEqual([...track.slice(first, first + bytes.length)]);
  if (isWhole) expect(bytes.length).toBe(end - first);
  return isWhole;
}

describe('fetchSliced()', () => {
  it(`gives the upstream's exact bytes or breaks off, in ${CASES} cases`, async () => {
    const seen = { whole: 0, broken: 0 };
    const property = fc.asyncProperty(anyCase, async (each) => {
      const isWhole = await judge(each);
      if (isWhole !== undefined) seen[isWhole ? 'whole' : 'broken']++;
    });
    await fc.assert(property, { numRuns: CASES, seed: 24 });
    // Otherwise the property would say little.
    expect(Math.min(seen.whole, seen.broken)).toBeGreaterThan(CASES / 50);
  });

  it('asks for slices of one representation, without conditions and with the same deadline', async () => {
    const { record, response, seen } = await askForNine();
    expect((await read(response)).isWhole).toBe(true);
    expect(seen.calls).toMatchObject([
      { timeoutMs: 280_000, headers: { range: 'bytes=1-4', 'if-none-match': '"x"', 'if-range': ETAG } },
      { timeoutMs: 280_000, headers: { range: 'bytes=5-8', 'if-range': ETAG } },
      { timeoutMs: 280_000, headers: { range: 'bytes=9-9', 'if-range': ETAG } },
    ]);
    for (const { headers } of seen.calls.slice(1)) expect(headers).not.toHaveProperty('if-none-match');
    expect(record.slices).toBe(3);
  });

  it.each([
    'has a weak ETag',
    'has no ETag',
    'does not know the total',
    'is encoded',
    'ends one byte earlier',
  ] as const)('asks again as the client did when the first slice %s', async (fault) => {
    const { record, response, seen } = await askForNine([fault]);
    expect(seen.calls.map(({ headers }) => headers['range'])).toEqual(['bytes=1-4', 'bytes=1-']);
    expect(seen.cancelled).toBe(1);
    expect((await read(response)).bytes).toEqual([...trackOf(10).slice(1)]);
    expect(record.slices).toBeUndefined();
  });

  it('makes no call after its reader has left, in the middle of a slice or between two', async () => {
    const between = await askForNine();
    await read(between.response, 3);
    expect(between.seen.calls).toHaveLength(2);
    expect(between.seen.calls.at(-1)?.signal?.aborted).toBe(true);
    const inTheMiddle = await askForNine();
    await read(inTheMiddle.response, 1);
    expect([inTheMiddle.seen.calls.length, inTheMiddle.seen.cancelled]).toEqual([1, 1]);
  });
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
