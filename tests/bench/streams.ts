/** What many streams at once take, each time in a process that has done nothing before. */

import { accountOf } from './accounting.ts';
import type { Contender } from './contenders.ts';
import { load } from './load.ts';
import { type Place, start } from './processes.ts';
import { playing, type Row, TRACKS_ROW } from './rows.ts';
import { number } from './statistics.ts';

const ROWS = [1, 10, 100, 1000].map(playing);

export const STREAMS = {
  id: 'streams',
  title: 'Streams at 1.4 Mbit/s each, then tracks as fast as they come: % of a core, peak MB',
  columns: ['', ...[...ROWS, TRACKS_ROW].map(({ title }) => title)],
  contenders: ['gateway', 'bare', 'floor', 'nginx'],
  needs: [],
  lines: measureStreams,
};

async function measureStreams(contender: Contender, place: Place, isQuick: boolean): Promise<string[][]> {
  const cell = async (row: Row) => {
    await using running = await start(contender, place);
    const before = await accountOf(running.pid);
    const { seconds } = await load(row, running.url, isQuick ? 2 : 4);
    const { cpuSeconds, peakMb } = await accountOf(running.pid);
    return `${number(((cpuSeconds - before.cpuSeconds) / seconds) * 100)} %, ${number(peakMb)} MB`;
  };
  const cells: string[] = [];
  for (const row of [...ROWS, TRACKS_ROW]) cells.push(await cell(row));
  return [[contender.title, ...cells]];
}
