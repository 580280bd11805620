/** The long form of the load tests: `bun run soak [scenario ...]` prints figures, and exits with 1 when one is wrong. */

import { CALL_BYTES, STREAMED_BODY_BYTES } from '../../src/gateway/settings/memory.ts';
import { runOne, runTwo } from './in-service.ts';
import type { Report } from './report.ts';
import { runStreams } from './streams.ts';

/** How much more than its estimate the gateway may use, because some garbage is not collected yet. */
const NOISE = 1.2;

interface Scenario {
  readonly run: () => Promise<Report>;
  /** A larger figure is wrong. Limits are far above what was measured, and far below what a fault costs. */
  readonly most: Readonly<Record<string, number>>;
  /** With fewer at once, some were refused that should have been served. */
  readonly leastWaiting?: number;
}

const GROWTH = { 'most MB that an instance gained': 20, 'most files that an instance gained': 20 };

/** Players who have stopped, in the memory of a container. */
function audience(player: number, memoryMb: number, leastWaiting: number): Scenario {
  const pace = { trackBytes: 10_000_000, bytesPerSecond: 1_000_000, checks: 3000 };
  return {
    run: () => runStreams({ works: { paid: 5, player }, memoryMb, ...pace }),
    leastWaiting,
    most: { 'KB per work while all wait': 400, 'p99 ms meanwhile': 50 },
  };
}

const ALWAYS: Readonly<Record<string, Scenario>> = {
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
  'one-instance': {
    run: () =>
      runOne({
        ...{ seconds: 180, memoryMb: 256, trackMs: 60_000 },
        attendance: { visitor: 100, author: 5, slowReader: 10, hurried: 60 },
      }),
    most: GROWTH,
  },
};

/** Two instances, for so many minutes. */
function twoInstances(minutes: number): Scenario {
  const run = () =>
    runTwo({
      ...{ seconds: minutes * 60, redisSeconds: 300, upstreamSeconds: 420, upgradeSeconds: 1200 },
      ...{ trackMs: 180_000 },
      attendance: { visitor: 16, author: 5, slowReader: 8, hurried: 8 },
    });
  return { run, most: GROWTH };
}

const names = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const [, minutes] = /--minutes=(\d+)/.exec(process.argv.join(' ')) ?? [];
const scenarios = minutes ? { 'two-instances': twoInstances(Number(minutes)) } : ALWAYS;
const unknown = names.filter((name) => !Object.hasOwn(scenarios, name));
if (unknown.length) throw new Error(`no such scenario: ${unknown}; there are ${Object.keys(scenarios)}`);
// An exit handler ends the processes of the scenario.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

let wrong = 0;
for (const [name, { run, most, leastWaiting = 0 }] of Object.entries(scenarios)) {
  if (names.length && !names.includes(name)) continue;
  const { figures, problems } = await run().catch(failed);
  const outOfBounds = [
    ...Object.entries(most).filter(([figure, limit]) => !(Number(figures[figure]) <= limit)),
    ...(Number(figures['waiting at once']) < leastWaiting ? [['waiting at once', leastWaiting]] : []),
  ].map(([figure, limit]) => `${figure}: the limit is ${limit}`);
  console.log(name, figures, ...problems, ...outOfBounds);
  wrong += problems.length + outOfBounds.length;
}
console.log(wrong ? `${wrong} problems` : 'all scenarios passed');
process.exit(wrong ? 1 : 0);

function failed(error: unknown): Report {
  return { figures: {}, problems: [String(error)] };
}
