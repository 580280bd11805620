/** The long form of the load tests: `bun run soak [scenario ...]`; prints its figures, and exits with 1 when one is wrong. */

import { STREAMED_BODY_BYTES, WAITING_CALL_BYTES } from '../../src/gateway/settings/memory.ts';
import { drain } from './soak/drain.ts';
import { heldGenerations } from './soak/held-generations.ts';
import { mixedRequests } from './soak/mixed-requests.ts';
import { type Figures, type Outcome, table } from './soak/outcome.ts';
import { slowReaders } from './soak/slow-readers.ts';

const LIMIT_MS = 300_000;
/** How much more than what the gateway reckons with a run may measure: garbage that is not collected yet. */
const NOISE = 1.2;

interface Scenario {
  readonly run: () => Promise<Outcome<Figures>>;
  /** More than so much of a figure is wrong: far above what was measured, far below what a fault costs. */
  readonly most: Readonly<Record<string, number>>;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'slow-readers': {
    run: () =>
      slowReaders({ readers: 500, trackBytes: 50_000_000, bytesPerSecond: 350_000, limitMs: LIMIT_MS }),
    most: { 'KB per reader at peak': (STREAMED_BODY_BYTES / 1024) * NOISE, 'p99 ms': 1000 },
  },
  'held-generations': {
    run: () => heldGenerations({ generations: 4000, checks: 5000, limitMs: LIMIT_MS }),
    most: { 'KB per held call': (WAITING_CALL_BYTES / 1024) * NOISE, 'p99 ms while held': 500 },
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
    run: () => drain({ tracks: 200, trackBytes: 50_000_000, idle: 100, limitMs: LIMIT_MS }),
    most: {},
  },
};

async function main(names: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !Object.hasOwn(SCENARIOS, name));
  if (unknown.length) {
    console.error(`no such scenario: ${unknown.join(', ')}; there are ${Object.keys(SCENARIOS).join(', ')}`);
    process.exit(1);
  }
  let wrong = 0;
  for (const [name, { run, most }] of Object.entries(SCENARIOS)) {
    if (names.length && !names.includes(name)) continue;
    console.log(name);
    const { figures, problems } = await run().catch(failed);
    const outcome = { figures, problems: [...problems, ...excesses(figures, most)] };
    console.log(`${table(outcome)}\n`);
    if (outcome.problems.length) wrong++;
  }
  console.log(wrong ? `${wrong} scenarios went wrong` : 'all as it should be');
  process.exit(wrong ? 1 : 0);
}

function failed(error: unknown): Outcome<Figures> {
  return { figures: {}, problems: [String(error)] };
}

function excesses(figures: Figures, most: Readonly<Record<string, number>>): string[] {
  return Object.entries(most)
    .filter(([name, limit]) => Number(figures[name]) > limit)
    .map(([name, limit]) => `${name}: ${figures[name]}, more than ${limit}`);
}

// So that what was started is ended.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
await main(process.argv.slice(2));
