/** Everything that a gateway is asked, at once and for long, by clients that break off: nothing of it may stay behind. */

import type { GatewayProcess } from '../../support/gateway-process.ts';
import { MixedClient, type Tally } from './mixed-client.ts';
import { type Outcome, Problems, percentile } from './outcome.ts';
import { type Memory, memoryOf, openSockets } from './process-status.ts';
import { seededRandom } from './random.ts';
import { startRig } from './rig.ts';
import { SessionChecks } from './session-checks.ts';

export interface MixedRequests {
  readonly requests: number;
  readonly clients: number;
  readonly seed: number;
  /** How long the upstream leaves a silent connection open. */
  readonly upstreamIdleSeconds: number;
  readonly limitMs: number;
}

/** So that there is a refresh every few requests. */
const USES_PER_TOKEN = 20;
const SAMPLES = 10;

export async function mixedRequests({
  requests,
  clients,
  seed,
  upstreamIdleSeconds,
  limitMs,
}: MixedRequests) {
  const problems = new Problems();
  await using rig = await startRig({
    connections: clients + 1,
    usesPerToken: USES_PER_TOKEN,
    upstreamIdleSeconds,
    limitMs,
  });
  const { gateway, upstream } = rig;
  const socketsAtStart = await openSockets(gateway.pid);
  await new SessionChecks(gateway.url, problems).make(1);
  const start = await memoryOf(gateway.pid);
  const tally: Tally = {
    sent: 0,
    cut: 0,
    cutTooLate: 0,
    refreshed: 0,
    statuses: new Map(),
    checks: [],
  };
  const samples: Promise<Memory>[] = [];
  const before = performance.now();
  let left = requests;
  const sending = Array.from({ length: clients }, async (_, index) => {
    const random = seededRandom(seed * 1000 + index);
    const client = new MixedClient(gateway.url, `u${index}`, random, tally, problems);
    while (left-- > 0) {
      await client.sendOne();
      const isDue = tally.sent >= (requests / SAMPLES) * (samples.length + 1);
      if (isDue) samples.push(memoryOf(gateway.pid));
    }
    client.close();
  });
  await Promise.all(sending.map((each, index) => problems.during(`client ${index}`, each)));
  const seconds = (performance.now() - before) / 1000;
  const busy = await memoryOf(gateway.pid);
  const socketsAtEnd = await socketsOnceIdle(gateway, socketsAtStart, upstreamIdleSeconds);
  if (socketsAtEnd > socketsAtStart)
    problems.add(`${socketsAtEnd} sockets at the end, ${socketsAtStart} before`);
  const { rssMb, peakMb } = await memoryOf(gateway.pid);
  await new SessionChecks(gateway.url, problems).make(1);
  const { refreshes, reused, unexpected } = await upstream.figures();
  if (reused > 0) problems.add(`${reused} refresh tokens were sent twice`);
  if (unexpected > 0) problems.add(`${unexpected} calls that the upstream does not serve`);
  // The upstream's own 503 passes through; whatever else is warned of is a problem.
  const log = gateway
    .errors()
    .replaceAll(/^.*"outcome":503.*$/gm, '')
    .trim();
  if (log) problems.add(`the gateway's log: ${log.slice(0, 300)}`);
  const tenths = (await Promise.all(samples)).map((memory) => Math.round(memory.rssMb));
  const statuses = [...tally.statuses].sort(([one], [other]) => one - other);
  return {
    figures: {
      seed,
      'requests sent': tally.sent,
      'cut by the client': tally.cut - tally.cutTooLate,
      'meant to be cut, answered first': tally.cutTooLate,
      answers: statuses.map(([status, count]) => `${status}: ${count}`).join(', '),
      'refreshes upstream': refreshes,
      'new cookies received': tally.refreshed,
      seconds: Math.round(seconds),
      'requests per second': Math.round(tally.sent / seconds),
      'gateway MB at start': start.rssMb,
      'gateway MB at each tenth': tenths.join(' '),
      // By then its caches are filled.
      'MB from the third tenth to the last': (tenths.at(-1) ?? 0) - (tenths[2] ?? 0),
      'gateway MB at peak': peakMb,
      'gateway MB right after': busy.rssMb,
      'gateway MB at end': rssMb,
      'sockets at start': socketsAtStart,
      'sockets at end': socketsAtEnd,
      'session checks': tally.checks.length,
      'p50 ms': percentile(tally.checks, 0.5),
      'p99 ms': percentile(tally.checks, 0.99),
    },
    problems: problems.list(),
  } satisfies Outcome<Record<string, number | string>>;
}

/** Waits until the sockets are as many as before, but no longer than the upstream takes to close the idle ones. */
async function socketsOnceIdle(
  gateway: GatewayProcess,
  before: number,
  idleSeconds: number,
): Promise<number> {
  const until = performance.now() + (idleSeconds * 2 + 10) * 1000;
  for (;;) {
    const now = await openSockets(gateway.pid);
    if (now <= before || performance.now() > until) return now;
    await Bun.sleep(100);
  }
}
