/** From the command to the first answer, and what a process holds that has done nothing yet. */

import { accountOf } from './accounting.ts';
import type { Contender } from './contender.ts';
import { start } from './line-up.ts';
import { type Figure, figureOf } from './statistics.ts';

export interface Start {
  readonly contender: string;
  readonly firstAnswerMs: Figure;
  readonly idleMb: Figure;
}

export interface StartOptions {
  readonly upstreamPort: number;
  readonly firstPort: number;
  readonly folder: string;
  readonly times: number;
  /** How long it stands idle before its memory is read. */
  readonly idleMs: number;
}

export const START_CONTENDERS = ['gateway', 'floor', 'elysia'];

/** One after another; those that have started stand idle while others start. */
export async function measureStarts(contender: Contender, options: StartOptions): Promise<Start> {
  await using stack = new AsyncDisposableStack();
  const startMs: number[] = [];
  const idleMb: Promise<number>[] = [];
  for (let time = 0; time < options.times; time++) {
    const running = stack.use(
      await start(contender, options.upstreamPort, options.firstPort + time, options.folder),
    );
    startMs.push(running.startMs);
    idleMb.push(Bun.sleep(options.idleMs).then(async () => (await accountOf(running.pid)).rssMb));
  }
  return {
    contender: contender.id,
    firstAnswerMs: figureOf(startMs),
    idleMb: figureOf(await Promise.all(idleMb)),
  };
}
