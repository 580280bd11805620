/**
 * Asks an upstream and the gateway in front of it for the same ranges, on any conditions: the responses are the same,
 * whether the gateway fetches them in slices or not. What is found is shrunk and printed as in `fuzz.test.ts`, of whose
 * requests these are a tenth.
 */

import { expect, it } from 'bun:test';
import fc from 'fast-check';
import { type RequestOptions, request, SIGNED_IN, startWorld, type World } from '../../support/world.ts';
import { REQUESTS as ALL_REQUESTS, assertEach, SEED } from './run.ts';
import { Track, type TrackKind } from './tracks.ts';

const REQUESTS = ALL_REQUESTS / 10;
const REQUESTS_OF_TRACK = 4;
/** The first quarter of a slice leaves in one write, or is streamed. */
const SLICES_BYTES = [10, 50_000];
const PATHS = ['/v1/music/creations/ID/content', '/v1/music/public/ID/content'];
const MOST_CHANGES = 8;
/** Only tracks with a strong ETag are sliced. */
const STRONG = Array.from({ length: 12 }, () => 'strong' as const);

const pick = <Value>(...values: readonly Value[]) => fc.constantFrom(...values);
/** Shrinks to nothing. */
const maybe = <Value>(weight: number, arbitrary: fc.Arbitrary<Value>) =>
  fc.oneof({ withCrossShrink: true }, { weight: 9, arbitrary: pick(undefined) }, { weight, arbitrary });

/** So many quarters of a slice, and some bytes: that is where slices and tracks begin and end. */
const lengthWithin = (quarters: number) =>
  fc.record({ quarters: fc.nat(quarters), bytes: fc.integer({ min: -2, max: 2 }) });
type Length = ReturnType<typeof lengthWithin> extends fc.Arbitrary<infer Value> ? Value : never;
const HUGE = ['999999999999999', '9007199254740993', '9'.repeat(30), '000000000000000000005', '007'];
const anyPosition = fc.oneof(
  { withCrossShrink: true },
  { weight: 6, arbitrary: lengthWithin(10) },
  { weight: 3, arbitrary: fc.integer({ min: -2, max: 2 }).map((behindSize) => ({ behindSize })) },
  { weight: 1, arbitrary: pick(...HUGE) },
);
type Position = typeof anyPosition extends fc.Arbitrary<infer Value> ? Value : never;
/** With letters for positions. */
const RANGES = [
  ...['bytes=0-', 'bytes=0-b', 'bytes=a-', 'bytes=a-b', 'bytes=-a'],
  ...['bytes=a-b,c-', 'bytes=a-b, c-d', 'bytes=0-0,-1', 'bytes=,a-', 'Bytes=a-', 'items=a-b', 'bytes a-b'],
  ...['bytes=b-a', 'bytes=a', 'bytes=-', 'bytes=', 'bytes=-0', 'bytes=a-b-c', 'bytes=a - b', 'bytes=0x0-'],
];
const anyRange = fc.record({
  text: fc.oneof(pick(...RANGES.slice(0, 4)), pick(...RANGES)),
  positions: fc.array(anyPosition, { minLength: 4 }),
});

/** With `E` for the ETag of the track, `O` for its last one, and the same in small letters for dates. */
const TAGS = ['E', 'O', 'W/E', 'O, W/E', '*', '"x", E', 'Z', 'x', '"', ''];
const DATES = ['e', 'o', 'n', 'Thu, 01 Jan 1970', 'x'];
const anyRequest = fc.record({
  method: fc.nat(7).map((draw) => (draw === 7 ? 'HEAD' : 'GET')),
  range: fc.option(anyRange, { nil: undefined, freq: 3 }),
  conditions: fc.record({
    'if-range': maybe(2, pick('E', 'E', 'O', 'W/E', 'Z', 'e', 'o', 'x', '')),
    'if-match': maybe(1, pick(...TAGS)),
    'if-none-match': maybe(1, pick(...TAGS)),
    'if-modified-since': maybe(1, pick(...DATES)),
    'if-unmodified-since': maybe(1, pick(...DATES)),
  }),
  encoding: pick('identity', 'gzip, br'),
  changes: maybe(3, fc.array(fc.boolean(), { minLength: 1, maxLength: MOST_CHANGES })),
});
type Asked = typeof anyRequest extends fc.Arbitrary<infer Value> ? Value : never;

const anyCase = fc.record({
  slices: fc.nat(SLICES_BYTES.length - 1),
  path: pick(...PATHS),
  size: lengthWithin(20),
  kind: fc.record({
    validator: pick<TrackKind['validator']>(...STRONG, 'weak', 'date', 'none'),
    change: pick<TrackKind['change']>('replaced', 'grown', 'shrunk', 'emptied', 'servers'),
    gzip: pick<TrackKind['gzip']>('never', 'never', 'asked', 'asked', 'always'),
    ignoresRanges: fc.nat(9).map((draw) => draw === 9),
  }),
  isPlayed: pick(true, true, false),
  requests: fc.array(anyRequest, { minLength: REQUESTS_OF_TRACK, maxLength: REQUESTS_OF_TRACK }),
});

const bytesOf = ({ quarters, bytes }: Length, sliceBytes: number) =>
  Math.max(0, Math.ceil((quarters * sliceBytes) / 4) + bytes);

function textOf(position: Position | undefined, sliceBytes: number, size: number): string {
  if (typeof position !== 'object') return position ?? '0';
  return `${'quarters' in position ? bytesOf(position, sliceBytes) : Math.max(0, size + position.behindSize)}`;
}

function headersOf({ range, conditions, encoding }: Asked, track: Track, sliceBytes: number) {
  const size = track.bytes().length;
  const old = Math.max(0, track.version - 1);
  const words: Readonly<Record<string, string>> = {
    ...{ E: track.etag(), O: track.etag(old), Z: track.etag().replace(/"$/, '-gzip"') },
    ...{ e: track.modified(), o: track.modified(old), n: track.modified(track.version + 1) },
  };
  const named = Object.entries(conditions).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value.replace(/\b[EOZeon]\b/g, (word) => words[word] ?? '')]],
  );
  const at = (letter: string) => textOf(range?.positions[letter.charCodeAt(0) - 97], sliceBytes, size);
  const asked = range && { range: range.text.replace(/(?<=[-=, ])[abcd]\b/g, at) };
  return { 'accept-encoding': encoding, ...Object.fromEntries(named), ...asked };
}

type Answer = Awaited<ReturnType<typeof ask>>;

/** Reads the response as far as it comes. */
async function ask(url: string, options: RequestOptions) {
  const unread = { status: 0, headers: new Headers(), body: null };
  const once = { cookie: SIGNED_IN, decompress: false, keepalive: false } as const;
  const response = await request(url, { ...once, ...options }).catch(() => unread);
  const pieces: Uint8Array[] = [];
  let isBroken = response === unread;
  try {
    for await (const piece of response.body ?? []) pieces.push(piece);
  } catch {
    isBroken = true;
  }
  return { status: response.status, headers: response.headers, bytes: Buffer.concat(pieces), isBroken };
}

/** What must be the same in both. */
const RELAYED = ['content-range', 'etag', 'last-modified', 'content-type', 'content-encoding'];

function isSame(answer: Answer, direct: Answer): boolean {
  // No head has arrived.
  if (answer.status === 0) return answer.isBroken;
  const length = answer.headers.get('content-length');
  return (
    answer.status === direct.status &&
    RELAYED.every((name) => answer.headers.get(name) === direct.headers.get(name)) &&
    (length === null || length === direct.headers.get('content-length')) &&
    (answer.isBroken
      ? answer.bytes.equals(direct.bytes.subarray(0, answer.bytes.length))
      : answer.bytes.equals(direct.bytes))
  );
}

const shown = ({ status, headers, bytes, isBroken }: Answer) => {
  const start = bytes.subarray(0, 100).toString('hex');
  return JSON.stringify({ status, ...Object.fromEntries(headers), length: bytes.length, start, isBroken });
};

/** Returns what the response was, and whether it was sliced. */
async function judge(world: World, path: string, track: Track, asked: Asked, sliceBytes: number) {
  const headers = headersOf(asked, track, sliceBytes);
  const { method } = asked;
  const { version: before } = track;
  world.upstream.received.length = 0;
  track.changes = [...(asked.changes ?? [])];
  const answer = await ask(`${world.url}/api/upstream${path}`, { method, headers });
  track.changes = [];
  const { version: after } = track;
  const calls = world.upstream.received.map((received) => received.headers.get('range'));
  // Otherwise the last call asks for what the client has asked for.
  const isSliced = calls.length > 1 && (calls.at(-1) ?? undefined) !== headers['range'];
  // Players cannot use a part of an encoded body, so the gateway never asks for one, nor for slices of one.
  const encodings = new Set(['identity', asked.range ? 'identity' : asked.encoding]);
  const direct: Answer[] = [];
  for (track.version = before; track.version <= after; track.version++)
    for (const encoding of encodings) {
      const options = { method, headers: { ...headers, 'accept-encoding': encoding } };
      direct.push(await ask(world.upstream.upstreamUrl + path, options));
    }
  track.version = after;
  const mayBreak = isSliced && after > before;
  if (!direct.some((each) => isSame(answer, each)) || (answer.isBroken && !mayBreak)) {
    const all = [answer, ...direct].map(shown).join('\n');
    throw new Error(`${method} ${JSON.stringify(headers)} of ${before} to ${after}:\n${all}`);
  }
  return `${answer.isBroken ? 'broken' : answer.status}${isSliced ? ' in slices' : ''}`;
}

it(
  `ranges and conditions have the upstream's own responses: FUZZ_SEED=${SEED}`,
  async () => {
    await using stack = new AsyncDisposableStack();
    const worlds = SLICES_BYTES.map((sliceBytes) => {
      return { sliceBytes, world: stack.use(startWorld({ RELAY_SLICE_BYTES: `${sliceBytes}` })) };
    });
    const seen = new Map<string, number>();
    let id = 0;
    const property = fc.asyncProperty(anyCase, async ({ slices, path, size, kind, isPlayed, requests }) => {
      const { world, sliceBytes } = worlds[slices] ?? expect.unreachable();
      const track = new Track({ size: bytesOf(size, sliceBytes), ...kind });
      const address = path.replace('ID', `${id++}`);
      const { upstream } = world;
      for (const method of ['GET', 'HEAD'])
        upstream.on(`${method} ${address}`, (received) => track.respond(received));
      if (isPlayed) await ask(`${world.url}/api/upstream${address}`, { headers: { range: 'bytes=0-' } });
      for (const asked of requests) {
        const outcome = await judge(world, address, track, asked, sliceBytes);
        seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
      }
    });
    await assertEach(property, Math.ceil(REQUESTS / REQUESTS_OF_TRACK), 400 * REQUESTS);
    // Otherwise it would say little.
    const outcomes = [
      '206 in slices',
      '200 in slices',
      'broken in slices',
      '200',
      '206',
      '304',
      '412',
      '416',
    ];
    if (!process.env['FUZZ_PATH']) expect([...seen.keys()].sort()).toEqual(outcomes.sort());
    if (process.env['FUZZ_REQUESTS']) console.log(seen);
  },
  500 * REQUESTS,
);
