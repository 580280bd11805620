import { describe, expect, it } from 'bun:test';
import fc from 'fast-check';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import { fetchSliced, longRange } from '../../src/gateway/upstream/fetch-sliced.ts';
import type { UpstreamCall } from '../../src/gateway/upstream/fetch-upstream.ts';
import type { UpstreamResponse } from '../../src/gateway/upstream/upstream-response.ts';

const ETAG = '"a"';
/** Each byte of a track differs from its neighbours, and from the same byte of another track. */
const trackOf = (size: number, seed: number) =>
  Uint8Array.from({ length: size }, (_, index) => (index * 31 + seed) % 251);

/** A response to a range, before a fault. */
interface Parts {
  readonly status: number;
  readonly etag: string;
  readonly first: number;
  readonly last: number;
  readonly total: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly headers: Record<string, string>;
  readonly breaks: boolean;
}

const status = (code: number) => () => ({ status: code, bytes: new Uint8Array(), headers: {} });

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
  'begins one byte later': ({ first, bytes }) => ({ first: first + 1, bytes: bytes.slice(1) }),
  'ends one byte earlier': ({ last, bytes }) => ({ last: last - 1, bytes: bytes.slice(0, -1) }),
  'sends one byte less': ({ bytes }) => ({ bytes: bytes.slice(0, -1) }),
  'sends one byte more': ({ bytes }) => ({ bytes: Uint8Array.of(...bytes, 1) }),
  'is encoded': () => ({ headers: { 'content-encoding': 'gzip' } }),
  'breaks off': ({ bytes }) => ({ bytes: bytes.slice(0, -1), breaks: true }),
  'has the status 200': status(200),
  'has the status 304': status(304),
  'has the status 401': status(401),
  'has the status 412': status(412),
  'has the status 416': status(416),
  'has the status 429': status(429),
  'has the status 500': status(500),
} satisfies Record<string, (parts: Parts) => Partial<Parts>>;
type Fault = keyof typeof FAULTS;
const NAMES = Object.keys(FAULTS).filter((name): name is Fault => Object.hasOwn(FAULTS, name));

/**
 * An upstream with one track. Its first responses have these faults, and the others none. The first chunk of a body may
 * be all of it.
 */
class Upstream {
  readonly calls: UpstreamCall[] = [];
  /** How many bodies were given up. */
  cancelled = 0;
  readonly #track: Uint8Array<ArrayBuffer>;
  readonly #faults: readonly Fault[];
  readonly #isAtOnce: boolean;

  constructor(track: Uint8Array<ArrayBuffer>, faults: readonly Fault[], isAtOnce = false) {
    this.#track = track;
    this.#faults = faults;
    this.#isAtOnce = isAtOnce;
  }

  fetch = async (call: UpstreamCall): Promise<UpstreamResponse> => {
    const fault = FAULTS[this.#faults[this.calls.length] ?? 'none'];
    this.calls.push(call);
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(call.headers['range'] ?? '') ?? [];
    const total = this.#track.length;
    const first = Number(from);
    if (first >= total) return { status: 416, headers: new Headers(), body: null };
    const last = Math.min(to ? Number(to) : total - 1, total - 1);
    const bytes = this.#track.slice(first, last + 1);
    const parts = {
      status: 206,
      etag: ETAG,
      first,
      last,
      total: `${total}`,
      bytes,
      headers: {},
      breaks: false,
    };
    return respond({ ...parts, ...fault(parts) }, call.bodyMode === 'buffered', this.#isAtOnce, () => {
      this.cancelled++;
    });
  };

  fetchMore = this.fetch;
}

function respond(
  { status, etag, first, last, total, bytes, headers, breaks }: Parts,
  isBuffered: boolean,
  isAtOnce: boolean,
  onCancel: () => void,
) {
  const all = new Headers({ ...headers, 'content-range': `bytes ${first}-${last}/${total}` });
  if (etag) all.set('etag', etag);
  if (isBuffered && breaks) throw new TypeError('reset');
  const body =
    bytes.length === 0 ? null : isBuffered ? bytes : inChunks(bytes, breaks, isAtOnce ? 1 : 2, onCancel);
  return { status, headers: all, body };
}

function inChunks(bytes: Uint8Array<ArrayBuffer>, breaks: boolean, chunks: 1 | 2, onCancel: () => void) {
  const half = Math.ceil(bytes.length / chunks);
  const rest = half < bytes.length ? [bytes.slice(half)] : [];
  const reader = {
    async read() {
      const value = rest.shift();
      if (value) return { done: false as const, value };
      if (breaks) throw new TypeError('reset');
      return { done: true as const };
    },
    async cancel() {
      onCancel();
    },
  };
  return { firstChunk: bytes.slice(0, half), reader };
}

function callFor(range: string): UpstreamCall {
  return {
    name: 'proxy',
    method: 'GET',
    url: 'http://upstream.test/v1/track',
    headers: { range, 'if-none-match': '"x"', 'if-range': ETAG },
    timeoutMs: 1000,
    bodyMode: 'streamed',
  };
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

async function ask(upstream: Upstream, range: string, sliceBytes: number, timeoutMs = 1000) {
  const record = new RequestRecord(new Request('http://gateway.test'));
  const call = { ...callFor(range), timeoutMs };
  const wanted = longRange(call, sliceBytes);
  const response = wanted ? fetchSliced(call, wanted, sliceBytes, upstream, record) : upstream.fetch(call);
  return { record, isSliced: wanted !== undefined, response: await response.catch(() => undefined) };
}

const CASES = 100_000;

interface Case {
  readonly size: number;
  readonly first: number;
  readonly length: number | undefined;
  readonly sliceBytes: number;
  readonly faults: readonly Fault[];
  readonly isAtOnce: boolean;
  readonly pieces: number;
}

const anyCase: fc.Arbitrary<Case> = fc.record({
  size: fc.integer({ min: 1, max: 40 }),
  first: fc.nat(45),
  length: fc.option(fc.nat(45), { nil: undefined }),
  sliceBytes: fc.integer({ min: 1, max: 12 }),
  faults: fc.array(
    fc.oneof({ weight: 3, arbitrary: fc.constant('none' as const) }, fc.constantFrom(...NAMES)),
    {
      maxLength: 8,
    },
  ),
  isAtOnce: fc.boolean(),
  pieces: fc.integer({ min: 1, max: 40 }),
});

/** Returns whether the sliced body came to its end; undefined for a response that is relayed as it is. */
async function judge({
  size,
  first,
  length,
  sliceBytes,
  faults,
  isAtOnce,
  pieces,
}: Case): Promise<boolean | undefined> {
  const upstream = new Upstream(trackOf(size, 1), faults, isAtOnce);
  const { response } = await ask(
    upstream,
    `bytes=${first}-${length === undefined ? '' : first + length}`,
    sliceBytes,
  );
  if (!response?.isSliced) {
    expect(upstream.calls.length).toBeLessThanOrEqual(2);
    return undefined;
  }
  const { bytes, isWhole } = await read(response, pieces);
  expect(upstream.calls.length).toBeLessThanOrEqual(Math.ceil(size / sliceBytes) + 1);
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
    expect(seen.whole).toBeGreaterThan(CASES / 50);
    expect(seen.broken).toBeGreaterThan(CASES / 50);
  }, 60_000);

  it('asks for each slice of the same representation, without the conditions of the client', async () => {
    const upstream = new Upstream(trackOf(10, 1), []);
    const { record, response } = await ask(upstream, 'bytes=1-', 4);
    if (!response) throw new Error('no response');
    expect(response.headers.get('content-range')).toBe('bytes 1-9/10');
    expect((await read(response)).isWhole).toBe(true);
    expect(upstream.calls.map(({ headers }) => headers)).toEqual([
      { range: 'bytes=1-4', 'if-none-match': '"x"', 'if-range': ETAG },
      { range: 'bytes=5-8', 'if-range': ETAG },
      { range: 'bytes=9-9', 'if-range': ETAG },
    ]);
    expect(record.slices).toBe(3);
    expect(record.calls).toEqual([]);
  });

  it.each([
    'has a weak ETag',
    'has no ETag',
    'does not know the total',
    'is encoded',
    'ends one byte earlier',
  ] as const)('asks again as the client did when the first slice %s', async (fault) => {
    const upstream = new Upstream(trackOf(10, 1), [fault]);
    const { record, response } = await ask(upstream, 'bytes=1-', 4);
    expect(upstream.calls.map(({ headers }) => headers['range'])).toEqual(['bytes=1-4', 'bytes=1-']);
    expect(upstream.cancelled).toBe(1);
    expect(response && (await read(response)).bytes).toEqual([...trackOf(10, 1).slice(1)]);
    expect(record.slices).toBeUndefined();
  });

  it.each([200, 304, 412, 416, 500] as const)('relays a first response with the status %i', async (code) => {
    const upstream = new Upstream(trackOf(10, 1), [`has the status ${code}`]);
    const { response } = await ask(upstream, 'bytes=1-', 4);
    expect(response?.status).toBe(code);
    expect(upstream.calls).toHaveLength(1);
  });

  it('makes no call after its reader has left', async () => {
    const upstream = new Upstream(trackOf(100, 1), []);
    const { response } = await ask(upstream, 'bytes=0-', 10);
    if (!response) throw new Error('no response');
    await read(response, 4);
    expect(upstream.calls).toHaveLength(3);
    expect(upstream.calls.at(-1)?.signal?.aborted).toBe(true);
  });

  it('gives up the first slice when its reader leaves in the middle of it', async () => {
    const upstream = new Upstream(trackOf(100, 1), []);
    const { response } = await ask(upstream, 'bytes=0-', 10);
    if (!response) throw new Error('no response');
    await read(response, 1);
    expect(upstream.cancelled).toBe(1);
  });

  it.each([
    [1000, 1000],
    [280_000, 55_000],
  ])('with a deadline of %i ms waits %i ms for a later slice', async (timeoutMs, laterMs) => {
    const upstream = new Upstream(trackOf(20, 1), []);
    const { response } = await ask(upstream, 'bytes=0-', 10, timeoutMs);
    if (!response) throw new Error('no response');
    await read(response);
    expect(upstream.calls.map((call) => call.timeoutMs)).toEqual([timeoutMs, laterMs]);
  });
});

describe('longRange()', () => {
  it.each([
    ['bytes=0-', 4, true],
    ['bytes=0-4', 4, true],
    ['bytes=0-3', 4, false],
    ['bytes=4-3', 4, false],
    ['bytes=-10', 4, false],
    ['bytes=0-9,20-', 4, false],
    ['bytes=0-9, 20-', 4, false],
    ['bytes=9999999999999999-', 4, false],
    ['items=0-', 4, false],
    ['bytes=0-', 0, false],
  ])('of %s with slices of %i bytes: %p', (range, sliceBytes, isLong) => {
    expect(longRange(callFor(range), sliceBytes) !== undefined).toBe(isLong);
  });
});
