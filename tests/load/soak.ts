/** The long form of the load tests: `bun run soak [scenario ...]` prints figures, and exits with 1 when one is wrong. */

import { CALL_BYTES, STREAMED_BODY_BYTES } from '../../src/gateway/settings/memory.ts';
import { inFlight } from './soak/in-flight.ts';
import { listeners } from './soak/listeners.ts';
import { longRun } from './soak/long-run.ts';
import { mixedRequests } from './soak/mixed-requests.ts';
import { type Figures, type Outcome, table } from './soak/outcome.ts';

const MINUTE_MS = 60_000;
const LIMIT_MS = 5 * MINUTE_MS;
/** How much more than its estimate the gateway may use, because some garbage is not collected yet. */
const NOISE = 1.2;

interface Scenario {
  readonly run: () => Promise<Outcome<Figures>>;
  /** A larger figure is wrong. Limits are far above what was measured, and far below what a fault costs. */
  readonly most: Readonly<Record<string, number>>;
  /** A smaller figure is wrong. */
  readonly least?: Readonly<Record<string, number>>;
}

const AUDIENCE = { trackBytes: 10_000_000, checks: 3000, limitMs: LIMIT_MS };

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'slow-readers': {
    run: () =>
      inFlight({
        works: 500,
        kinds: ['reader'],
        trackBytes: 50_000_000,
        bytesPerSecond: 350_000,
        checks: 5000,
        limitMs: LIMIT_MS,
      }),
    most: { 'KB per work at peak': (STREAMED_BODY_BYTES / 1024) * NOISE, 'p99 ms meanwhile': 1000 },
  },
  listeners: {
    run: () => listeners({ players: 400, memoryMb: 256, ...AUDIENCE }),
    least: { 'players served': 350, 'generations with every byte': 5 },
    most: { 'KB per player who has stopped': 300, 'p99 ms of session checks meanwhile': 50 },
  },
  'many-listeners': {
    run: () => listeners({ players: 1200, memoryMb: 512, ...AUDIENCE }),
    least: { 'players served': 1000, 'generations with every byte': 5 },
    most: { 'KB per player who has stopped': 300, 'p99 ms of session checks meanwhile': 50 },
  },
  'waiting-generations': {
    run: () => inFlight({ works: 4000, kinds: ['head'], checks: 5000, limitMs: LIMIT_MS }),
    most: { 'KB per work while all wait': (CALL_BYTES / 1024) * NOISE, 'p99 ms meanwhile': 500 },
  },
  'mixed-requests': {
    run: () =>
      mixedRequests({
        requests: 1_000_000,
        clients: 64,
        seed: Number(process.env['SOAK_SEED'] ?? Math.floor(Math.random() * 1e6)),
        upstreamIdleSeconds: 10,
        limitMs: LIMIT_MS,
      }),
    most: { 'MB from the third tenth to the last': 60 },
  },
  drain: {
    run: () =>
      inFlight({
        works: 200,
        kinds: ['reader', 'body', 'head'],
        trackBytes: 50_000_000,
        terminates: true,
        checks: 100,
        limitMs: LIMIT_MS,
      }),
    most: {},
  },
};

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
for (const [name, { run, most, least = {} }] of Object.entries(
  minutes ? inService(Number(minutes)) : SCENARIOS,
)) {
  if (names.length && !names.includes(name)) continue;
  console.log(name);
  const { figures, problems, plot = '' } = await run().catch(failed);
  const excesses = Object.entries(most)
    .filter(([figure, limit]) => Number(figures[figure]) > limit)
    .map(([figure, limit]) => `${figure}: ${figures[figure]}, more than ${limit}`);
  const shortfalls = Object.entries(least)
    .filter(([figure, limit]) => Number(figures[figure]) < limit)
    .map(([figure, limit]) => `${figure}: ${figures[figure]}, less than ${limit}`);
  console.log(`${table({ figures, problems: [...problems, ...excesses, ...shortfalls] })}\n\n${plot}`);
  if (problems.length + excesses.length + shortfalls.length > 0) wrong++;
}
console.log(wrong ? `${wrong} scenarios failed` : 'all scenarios passed');
process.exit(wrong ? 1 : 0);

/** Two instances, for so many minutes. */
function inService(minutes: number): Readonly<Record<string, Scenario>> {
  const run = {
    durationMs: minutes * MINUTE_MS,
    redisEveryMs: 5 * MINUTE_MS,
    upstreamEveryMs: 7 * MINUTE_MS,
    upgradesEveryMs: 20 * MINUTE_MS,
    sampleEveryMs: 10_000,
    attendance: { visitors: 16, authors: 5, slowReaders: 8, hurried: 8, newcomers: 1, longTrackMs: 180_000 },
  };
  const most = { 'most MB that an instance gained': 20, 'most files that an instance gained': 20 };
  return { 'two-instances': { run: () => longRun(run), most } };
}

function failed(error: unknown): Outcome<Figures> {
  return { figures: {}, problems: [String(error)] };
}
