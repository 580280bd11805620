/** The long form of the load tests: `bun run soak [scenario ...]` prints figures, and exits with 1 when one is wrong. */

import { CALL_BYTES, STREAMED_BODY_BYTES } from '../../src/gateway/settings/memory.ts';
import { runOne, runTwo } from './in-service.ts';
import { type Report, table } from './report.ts';
import { runStreams } from './streams.ts';

/** How much more than its estimate the gateway may use, because some garbage is not collected yet. */
const NOISE = 1.2;

interface Scenario {
  readonly run: () => Promise<Report>;
  /** A larger figure is wrong. Limits are far above what was measured, and far below what a fault costs. */
  readonly most: Readonly<Record<string, number>>;
  /** A smaller figure is wrong. */
  readonly least?: Readonly<Record<string, number>>;
}

/** Players who have stopped, in the memory of a container. */
function audience(players: number, memoryMb: number, least: number): Scenario {
  const pace = { trackBytes: 10_000_000, bytesPerSecond: 1_000_000, checks: 3000 };
  return {
    run: () => runStreams({ works: { paid: 5, player: players }, memoryMb, ...pace }),
    least: { 'waiting at once': least },
    most: { 'KB per work while all wait': 300, 'p99 ms meanwhile': 50 },
  };
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'slow-readers': {
    run: () =>
      runStreams({ works: { reader: 500 }, trackBytes: 50_000_000, bytesPerSecond: 350_000, checks: 5000 }),
    most: { 'KB per work at peak': (STREAMED_BODY_BYTES / 1024) * NOISE, 'p99 ms meanwhile': 1000 },
  },
  listeners: audience(400, 256, 350),
  'many-listeners': audience(1200, 512, 1000),
  'waiting-generations': {
    run: () => runStreams({ works: { head: 4000 }, checks: 5000 }),
    most: { 'KB per work while all wait': (CALL_BYTES / 1024) * NOISE, 'p99 ms meanwhile': 500 },
  },
  drain: {
    run: () =>
      runStreams({
        ...{
          works: { reader: 67, body: 67, head: 66 },
          trackBytes: 50_000_000,
          terminates: true,
          checks: 100,
        },
      }),
    most: {},
  },
  'one-instance': {
    run: () =>
      runOne({
        ...{ seconds: 180, memoryMb: 256, trackMs: 60_000 },
        attendance: { visitor: 100, stranger: 20, author: 5, slowReader: 10, hurried: 60, newcomer: 5 },
      }),
    most: { 'most MB that an instance gained': 20, 'most files that an instance gained': 20 },
  },
};

/** Two instances, for so many minutes. */
function inService(minutes: number): Readonly<Record<string, Scenario>> {
  const run = {
    ...{ seconds: minutes * 60, trackMs: 180_000 },
    ...{ redisSeconds: 300, upstreamSeconds: 420, upgradeSeconds: 1200 },
    attendance: { visitor: 16, stranger: 1, author: 5, slowReader: 8, hurried: 8, newcomer: 1 },
  };
  const most = { 'most MB that an instance gained': 20, 'most files that an instance gained': 20 };
  return { 'two-instances': { run: () => runTwo(run), most } };
}

const names = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const [, minutes] = /^--minutes=(\d+)$/m.exec(process.argv.slice(2).join('\n')) ?? [];
const unknown = names.filter((name) => !Object.hasOwn(SCENARIOS, name));
if (unknown.length) {
  console.error(`no such scenario: ${unknown.join(', ')}; there are ${Object.keys(SCENARIOS).join(', ')}`);
  process.exit(1);
}
// An exit handler ends the processes of the scenario.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

let wrong = 0;
for (const [name, scenario] of Object.entries(minutes ? inService(Number(minutes)) : SCENARIOS)) {
  if (names.length && !names.includes(name)) continue;
  console.log(name);
  const { run, most, least = {} } = scenario;
  const { figures, problems } = await run().catch(failed);
  const outOfBounds = [
    ...Object.entries(most).filter(([figure, limit]) => !(Number(figures[figure]) <= limit)),
    ...Object.entries(least).filter(([figure, limit]) => !(Number(figures[figure]) >= limit)),
  ].map(([figure, limit]) => `${figure}: ${figures[figure]}, and the limit is ${limit}`);
  const all = [...problems, ...outOfBounds];
  console.log(`${table({ figures, problems: all })}\n`);
  if (all.length > 0) wrong++;
}
console.log(wrong ? `${wrong} scenarios failed` : 'all scenarios passed');
process.exit(wrong ? 1 : 0);

function failed(error: unknown): Report {
  return { figures: {}, problems: [String(error)] };
}
