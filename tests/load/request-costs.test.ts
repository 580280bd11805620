import { afterAll, beforeAll, expect, it } from 'bun:test';
import { COUNTING, type Counts, startCountedGateway } from '../support/counted-gateway.ts';
import { startPiecewiseUpstream, TRACK_PIECES } from '../support/piecewise-upstream.ts';
import { describeWith } from '../support/requirements.ts';
import { ORIGIN, request, SIGNED_IN } from '../support/world.ts';

/**
 * What one request costs. These are counts, so that they hardly depend on the machine and not at all on its speed. Work
 * that makes no object and sends nothing is not counted: only `bun run bench` sees it.
 *
 * One send is the call to the upstream. The others go to the client: a complete response is one, a range is a head, a
 * piece and an end, and a track is a head with the first piece, the other pieces, and an end. More sends are small
 * packets, each of which may wait for the network.
 */
const ROWS: readonly (readonly [name: string, path: string, times: number, cost: Counts])[] = [
  ['models', '/api/music/models', 500, { objects: 202, bytes: 2_480, sends: 2 }],
  ['session check', '/api/auth/session', 500, { objects: 209.8, bytes: 2_480, sends: 2 }],
  ['short proxied call', '/api/upstream/v1/models', 500, { objects: 228.8, bytes: 2_480, sends: 2 }],
  ['refused origin', '/api/music/models', 500, { objects: 113, bytes: 770, sends: 1 }],
  ['range of 48 KB', '/api/upstream/v1/range', 200, { objects: 289.7, bytes: 50_300, sends: 4 }],
  ['track', '/api/upstream/v1/track', 10, { objects: 1_212, bytes: 1_658_400, sends: TRACK_PIECES + 2 }],
];
/** The noise is less: 0.6 % of the objects beside busy loops, 5 % of the bytes. A full socket could split a send. */
const MORE = { objects: 1.015, bytes: 1.1, sends: 1.015 };
/** When a request costs less than this, its row is too high to notice a later loss of 15 %: write down the new figure. */
const LESS = 0.9;
/**
 * The log is written every 100 ms, which costs objects as well, so a request that takes long costs more of them.
 * Requests in parallel keep that share small on a busy machine.
 */
const LANES = 10;

describeWith(COUNTING, 'what a request costs', () => {
  let upstream: Awaited<ReturnType<typeof startPiecewiseUpstream>>;
  let gateway: Awaited<ReturnType<typeof startCountedGateway>>;
  beforeAll(async () => {
    upstream = await startPiecewiseUpstream();
    gateway = await startCountedGateway(upstream.url);
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  it.each(ROWS)('is what is written down: %s', async (name, path, times, cost) => {
    const isRefused = name === 'refused origin';
    const call = async () => {
      const origin = isRefused ? 'http://evil.test' : ORIGIN;
      const response = await request(gateway.url + path, { cookie: SIGNED_IN, origin });
      expect(response.ok).toBe(!isRefused);
      let received = 0;
      for await (const piece of response.body ?? []) {
        received += piece.byteLength;
        upstream.onReceived(received);
      }
    };
    // Only one track at a time can be sent piece by piece.
    const lanes = name === 'track' ? 1 : LANES;
    const send = async (requests: number) => {
      let left = requests;
      const lane = async () => {
        while (left-- > 0) await call();
      };
      await Promise.all(Array.from({ length: lanes }, lane));
    };
    const counted = await gateway.costOf(send, times);
    console.log(name, counted);
    for (const count of ['objects', 'bytes', 'sends'] as const) {
      expect(counted[count], count).toBeWithin(cost[count] * LESS, cost[count] * MORE[count]);
    }
  });
});
