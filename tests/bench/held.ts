/** Generations that the upstream takes its time for: the memory of each, and what others notice of them. */

import { Connection } from '../faults/soak/connection.ts';
import { audioFor } from '../faults/soak/content.ts';
import { firstCookies } from '../faults/soak/rotating-sessions.ts';
import { startUpstreamProcess } from '../faults/soak/upstream-process.ts';
import { accountOf } from './accounting.ts';
import type { Contender } from './contender.ts';
import { start } from './line-up.ts';
import { load } from './load.ts';
import { ORIGIN } from './mapping.ts';
import { pinToRest } from './running.ts';
import { COMMON_WORK, type Work } from './work.ts';

export interface Held {
  readonly contender: string;
  readonly generations: number;
  readonly kilobytesEach: number;
  /** Of a session check, one after another. */
  readonly p50MsBefore: number;
  readonly p99MsBefore: number;
  readonly p50MsHeld: number;
  readonly p99MsHeld: number;
}

export interface HeldOptions {
  readonly generations: number;
  readonly port: number;
  readonly folder: string;
  readonly seconds: number;
}

export const HELD_CONTENDERS = ['gateway', 'floor'];

/** Not more connections at once than a listener's queue takes. */
const OPENED_AT_ONCE = 100;

/** @throws Error when a generation is not answered with its own audio */
export async function measureHeld(contender: Contender, options: HeldOptions): Promise<Held> {
  const { generations, port, folder, seconds } = options;
  await using upstream = await startUpstreamProcess({
    trackFolder: folder,
    usesPerToken: 0,
    idleSeconds: 255,
  });
  pinToRest(upstream.pid);
  await using running = await start(contender, Number(new URL(upstream.url).port), port, folder);
  const check = sessionCheck();
  const before = await load(check, running.url, seconds, folder);
  const { rssMb } = await accountOf(running.pid);

  const answers: Promise<boolean>[] = [];
  while (answers.length < generations) {
    const count = Math.min(OPENED_AT_ONCE, generations - answers.length);
    for (let opened = 0; opened < count; opened++) answers.push(generate(running.url, answers.length));
    await Promise.race([upstream.holds(answers.length), failed(answers)]);
  }
  const held = await accountOf(running.pid);
  const meanwhile = await load(check, running.url, seconds, folder);
  await upstream.release();
  const right = (await Promise.all(answers)).filter(Boolean).length;
  if (right !== generations) throw new Error(`${generations - right} of ${generations} answers wrong`);
  return {
    contender: contender.id,
    generations,
    kilobytesEach: ((held.rssMb - rssMb) * 1024) / generations,
    p50MsBefore: before.p50Ms,
    p99MsBefore: before.p99Ms,
    p50MsHeld: meanwhile.p50Ms,
    p99MsHeld: meanwhile.p99Ms,
  };
}

function sessionCheck(): Work {
  const session = COMMON_WORK.find(({ id }) => id === 'session');
  if (!session) throw new Error('no session check in the work list');
  const headers = { ...session.headers, cookie: firstCookies('listener') };
  return { ...session, id: 'session-while-held', headers, connections: 1 };
}

/** @returns whether it got its own audio */
async function generate(url: string, number: number): Promise<boolean> {
  const key = `generation-${number}`;
  const connection = await Connection.open(url);
  try {
    const answer = await connection.send({
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
    return answer.status === 200 && answer.body.equals(audioFor(key));
  } finally {
    connection.cut();
  }
}

/** Rejects when one ends before its time; otherwise it never settles. */
async function failed(answers: readonly Promise<boolean>[]): Promise<never> {
  await Promise.race(answers);
  throw new Error('a generation ended that the upstream holds');
}
