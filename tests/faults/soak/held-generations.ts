/** Thousands of generations that the upstream takes its time for: others must not notice, and each gets its own audio. */

import { ORIGIN } from '../../support/world.ts';
import { type Answer, Connection } from './connection.ts';
import { audioFor } from './content.ts';
import { type Outcome, Problems, percentile } from './outcome.ts';
import { memoryOf } from './process-status.ts';
import { startRig } from './rig.ts';
import { firstCookies } from './rotating-sessions.ts';
import { SessionChecks } from './session-checks.ts';

export interface HeldGenerations {
  readonly generations: number;
  /** Session checks before, and again while all is held. */
  readonly checks: number;
  readonly limitMs: number;
}

/** Not more connections at once than a listener's queue takes. */
const OPENED_AT_ONCE = 100;

export async function heldGenerations({ generations, checks, limitMs }: HeldGenerations) {
  const problems = new Problems();
  await using rig = await startRig({ connections: generations + 1, limitMs });
  const { gateway, upstream } = rig;
  const before = new SessionChecks(gateway.url, problems);
  await before.make(checks);
  const start = await memoryOf(gateway.pid);

  const calls: Promise<void>[] = [];
  let right = 0;
  while (calls.length < generations) {
    const count = Math.min(OPENED_AT_ONCE, generations - calls.length);
    for (let opened = 0; opened < count; opened++) {
      const key = `generation-${calls.length}`;
      const call = generate(gateway.url, key).then((answer) => {
        if (isRight(answer, key)) right++;
        else problems.add(`${key}: ${answer.status}, ${answer.body.length} bytes`);
      });
      calls.push(problems.during(key, call));
    }
    await upstream.holds(calls.length);
  }
  const held = await memoryOf(gateway.pid);
  const meanwhile = new SessionChecks(gateway.url, problems);
  await meanwhile.make(checks);

  await upstream.release();
  await Promise.all(calls);
  const { rssMb, peakMb } = await memoryOf(gateway.pid);
  if (gateway.errors()) problems.add(`the gateway's log: ${gateway.errors().slice(0, 300)}`);
  return {
    figures: {
      'held at once': generations,
      'answered right': right,
      'gateway MB at start': start.rssMb,
      'gateway MB while all is held': held.rssMb,
      'KB per held call': Math.round(((held.rssMb - start.rssMb) * 1024) / generations),
      'gateway MB at peak': peakMb,
      'gateway MB at end': rssMb,
      'session checks': meanwhile.durations.length,
      'p50 ms before': percentile(before.durations, 0.5),
      'p99 ms before': percentile(before.durations, 0.99),
      'p50 ms while held': percentile(meanwhile.durations, 0.5),
      'p99 ms while held': percentile(meanwhile.durations, 0.99),
    },
    problems: problems.list(),
  } satisfies Outcome<Record<string, number>>;
}

async function generate(url: string, key: string): Promise<Answer> {
  const connection = await Connection.open(url);
  try {
    return await connection.send({
      method: 'POST',
      path: '/api/music/generate',
      headers: {
        origin: ORIGIN,
        cookie: firstCookies(key.replace('-', '_')),
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify({ model: 'composer-1', prompt: 'hold', music_length_ms: 30_000 }),
    });
  } finally {
    connection.cut();
  }
}

function isRight({ status, headers, body }: Answer, key: string): boolean {
  return status === 200 && headers.get('content-type') === 'audio/mpeg' && body.equals(audioFor(key));
}
