/** Players that have stopped reading, in the memory of a container: how many are served, and what each of them costs. */

import net from 'node:net';
import { memoryOf } from '../../support/process-status.ts';
import { RawConnection } from '../../support/raw-http.ts';
import { sha256, slowPieces, TRACKS } from './content.ts';
import { percentile } from './outcome.ts';
import { readTrack } from './read-track.ts';
import { type ClientRequest, exchange, generation, PROXY, signedIn } from './requests.ts';
import { firstCookies } from './rotating-sessions.ts';
import { checkSessions, type Rig, runScenario } from './scenario.ts';

export interface Audience {
  readonly players: number;
  readonly memoryMb: number;
  readonly trackBytes: number;
  /** Session checks while all players have stopped. */
  readonly checks: number;
  readonly limitMs: number;
}

const GENERATIONS = 5;
/** A listener's queue takes no more connections at once. */
const OPENED_AT_ONCE = 100;
/** After this time the allocator has returned what the first slices took. */
const SETTLE_MS = 3000;
/** How fast each of them reads on. */
const BYTES_PER_SECOND = 1_000_000;

export function listeners(audience: Audience) {
  const { players, memoryMb, checks } = audience;
  const options = { ...audience, memoryBytes: memoryMb * 1024 * 1024, refuses: true };
  return runScenario(options, async (rig) => {
    const { gateway, problems } = rig;
    const start = await memoryOf(gateway.pid);
    const released = Promise.withResolvers<void>();
    const generations = Array.from({ length: GENERATIONS }, (_, index) => generate(rig, `paid-${index}`));
    const audienceOf = Array.from({ length: players }, (_, index) => player(rig, index, released.promise));
    for (let opened = 0; opened < players; opened += OPENED_AT_ONCE) {
      await Promise.all(audienceOf.slice(opened, opened + OPENED_AT_ONCE).map(({ play }) => play()));
    }
    const served = audienceOf.filter(({ isServed }) => isServed()).length;
    const meanwhile = await checkSessions(gateway.url, checks);
    await Bun.sleep(SETTLE_MS);
    const stopped = await memoryOf(gateway.pid);
    released.resolve();
    await Promise.all(audienceOf.map(({ end }, index) => problems.during(`player ${index}`, end())));
    const complete = await Promise.all(generations);
    const { peakMb } = await memoryOf(gateway.pid);
    return {
      'players served': served,
      'refused with 503': players - served,
      'KB per player who has stopped': Math.round(((stopped.rssMb - start.rssMb) * 1024) / served),
      'MB at peak': peakMb,
      'players with every byte': audienceOf.filter(({ isWhole }) => isWhole()).length,
      'generations with every byte': complete.filter(Boolean).length,
      'p50 ms of session checks meanwhile': percentile(meanwhile, 0.5),
      'p99 ms of session checks meanwhile': percentile(meanwhile, 0.99),
    };
  });
}

/** One that asks as browsers do, stops after the first bytes, and reads slowly on when it is released. */
function player({ gateway, checksums }: Rig, index: number, released: Promise<void>) {
  const track = index % TRACKS;
  const request: ClientRequest = signedIn(
    firstCookies(`listener_${index}`),
    'GET',
    `${PROXY}/music/ranged/${track}/content`,
    undefined,
    { range: 'bytes=0-', connection: 'close' },
  );
  const begun = Promise.withResolvers<boolean>();
  let isServed = false;
  let isWhole = false;
  let received: Promise<void> | undefined;
  const pace = async (bytes: number) => {
    begun.resolve(true);
    await released;
    await Bun.sleep((bytes / BYTES_PER_SECOND) * 1000);
  };
  const read = async () => {
    const socket = net.connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1' });
    isWhole = (await readTrack(socket, request, pace)) === checksums[track];
  };
  return {
    isServed: () => isServed,
    isWhole: () => isWhole,
    /** Resolves when the first bytes or the refusal have arrived. */
    async play(): Promise<void> {
      received = read();
      isServed = await Promise.race([begun.promise, received.then(() => true).catch(() => false)]);
    },
    /** @throws Error when the player was served and has not got every byte, or its refusal is none */
    async end(): Promise<void> {
      const failure = await received?.then(() => undefined).catch((error: Error) => error.message);
      if (isServed ? isWhole : /HTTP\/1.1 503 .*\r\nretry-after: 5\r\n/is.test(failure ?? '')) return;
      throw new Error(failure ?? 'other bytes than were sent');
    },
  };
}

async function generate({ gateway, problems }: Rig, key: string): Promise<boolean> {
  const connection = new RawConnection(Number(new URL(gateway.url).port));
  const request = generation(firstCookies('author'), 'slowly', key);
  let isRight = false;
  await problems.during(
    `generation ${key}`,
    exchange(connection, request).then(({ status, body }) => {
      if (status !== 200) throw new Error(`status ${status}`);
      isRight = sha256(Buffer.from(body, 'latin1')) === sha256(...slowPieces(key));
      if (!isRight) throw new Error('other bytes than were sent');
    }),
  );
  connection.reset();
  return isRight;
}
