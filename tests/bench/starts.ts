/** How long a contender takes from the command to its first response, and its memory before it has done any work. */

import { accountOf } from './accounting.ts';
import type { Contender } from './contenders.ts';
import { type Place, start } from './processes.ts';
import { figure } from './statistics.ts';

export const STARTS = {
  id: 'starts',
  title: 'Start',
  columns: ['', 'first response after ms', 'idle MB'],
  contenders: ['gateway', 'bare', 'floor', 'elysia'],
  needs: [],
  lines: measureStarts,
};

/** One start after another; those that have started stay idle meanwhile. */
async function measureStarts(contender: Contender, place: Place, isQuick: boolean): Promise<string[][]> {
  await using stack = new AsyncDisposableStack();
  const startMs: number[] = [];
  const idleMb: Promise<number>[] = [];
  for (let each = 0; each < (isQuick ? 2 : 10); each++) {
    const running = stack.use(await start(contender, place));
    startMs.push(running.startMs);
    idleMb.push(Bun.sleep(isQuick ? 500 : 5000).then(async () => (await accountOf(running.pid)).rssMb));
  }
  return [[contender.title, figure(startMs), figure(await Promise.all(idleMb))]];
}
