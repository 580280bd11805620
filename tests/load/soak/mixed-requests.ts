/** Everything that a gateway is asked, for long, by clients of which some disconnect: nothing of it may stay behind. */

import fc from 'fast-check';
import { eventually } from '../../support/eventually.ts';
import { memoryOf, openSocketsOf } from '../../support/process-status.ts';
import { MixedClient, type Step, step, Tally } from './mixed-client.ts';
import { percentile } from './outcome.ts';
import { checkSessions, runScenario } from './scenario.ts';

export interface MixedRequests {
  readonly requests: number;
  readonly clients: number;
  readonly seed: number;
  /** How long the upstream leaves a silent connection open. */
  readonly upstreamIdleSeconds: number;
  readonly limitMs: number;
}

/** An access token expires after so many calls, so that there is a refresh every few requests. */
const USES_PER_TOKEN = 20;
const SAMPLES = 10;
const BATCH = 500;

export function mixedRequests({ requests, clients, seed, upstreamIdleSeconds, limitMs }: MixedRequests) {
  const options = { usesPerToken: USES_PER_TOKEN, upstreamIdleSeconds, limitMs };
  return runScenario(options, async (rig) => {
    const { gateway, upstream, problems, socketsAtStart } = rig;
    const tally = new Tally();
    const samples: Promise<number>[] = [];
    const startedAt = performance.now();
    let left = requests;
    const send = async (index: number) => {
      const client = new MixedClient(rig, `u${index}`, tally);
      for (const each of steps(seed + index * 1_000_003)) {
        if (left-- <= 0) break;
        await client.send(each);
        const isDue = tally.sent >= (requests / SAMPLES) * (samples.length + 1);
        if (isDue) samples.push(memoryOf(gateway.pid).then(({ rssMb }) => Math.round(rssMb), notRunning));
      }
      client.close();
    };
    const sending = Array.from({ length: clients }, (_, index) => send(index));
    await Promise.all(sending.map((each, index) => problems.during(`client ${index}`, each)));
    const seconds = (performance.now() - startedAt) / 1000;
    const deadlineMs = (upstreamIdleSeconds * 2 + 10) * 1000;
    // The upstream closes its idle connections.
    const areClosed = async () => (await openSocketsOf(gateway.pid)) <= socketsAtStart;
    const what = `the gateway's sockets to be ${socketsAtStart} again`;
    await problems.during('afterwards', eventually(areClosed, what, deadlineMs));
    const { rssMb, peakMb } = await memoryOf(gateway.pid);
    await problems.during('afterwards', checkSessions(gateway.url, 1));
    const { unexpected, sessions } = upstream;
    const { refreshes, reused } = sessions;
    if (reused > 0) problems.add(`${reused} refresh tokens were sent twice`);
    if (unexpected > 0) problems.add(`${unexpected} calls that the upstream does not serve`);
    const tenths = await Promise.all(samples);
    return {
      seed,
      'requests sent': tally.sent,
      'cut by the client': tally.cut,
      responses: [...tally.statuses].map(([status, count]) => `${status}: ${count}`).join(', '),
      'refreshes upstream': refreshes,
      'requests per second': Math.round(tally.sent / seconds),
      'gateway MB at each tenth': tenths.join(' '),
      // After the third tenth its caches are full.
      'MB from the third tenth to the last': (tenths.at(-1) ?? 0) - (tenths[2] ?? 0),
      'gateway MB at peak': peakMb,
      'gateway MB at end': rssMb,
      'p50 ms': percentile(tally.checkMs, 0.5),
      'p99 ms': percentile(tally.checkMs, 0.99),
    };
  });
}

/** The gateway may have been killed meanwhile. */
function notRunning(): number {
  return Number.NaN;
}

/** The same seed gives the same steps, without end. */
function* steps(seed: number): Generator<Step> {
  for (let batch = 0; ; batch++) yield* fc.sample(step, { seed: seed + batch, numRuns: BATCH });
}
