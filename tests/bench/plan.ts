/** What a run does: its rows, its contenders, and how often and how long. */

import type { Contender } from './contender.ts';
import { CONTENDERS } from './contenders.ts';
import type { Pace } from './measure.ts';
import type { Options } from './options.ts';
import { COMMON_WORK, CONNECTION_WORK, GATEWAY_WORK, SIZE_WORK, type Work } from './work.ts';

export interface Plan {
  readonly contenders: readonly Contender[];
  /** For every contender. */
  readonly common: Stage;
  /** For few: how cost grows, and what a proxy alone does not do. */
  readonly side: Stage;
  /** How many generations are held; 0: that row is not asked for. */
  readonly heldGenerations: number;
  /** How often each is started; 0: that row is not asked for. */
  readonly starts: number;
  readonly idleMs: number;
}

export interface Stage {
  readonly works: readonly Work[];
  readonly pace: Pace;
}

/** One of each kind. */
const QUICK_ROWS = ['models', 'range', 'generate', 'proxy-1m', 'refused-origin', 'sign-in', 'refresh'];
/** Rows that are no load of wrk's. */
const HELD = 'held';
const STARTS = 'starts';

/** @throws Error for a contender or a row that is none */
export function planOf({ quick, only, rows }: Options): Plan {
  const side = [...SIZE_WORK, ...CONNECTION_WORK, ...GATEWAY_WORK];
  const allRows = [...[...COMMON_WORK, ...side].map(({ id }) => id), HELD, STARTS];
  requireKnown(
    'contender',
    only,
    CONTENDERS.map(({ id }) => id),
  );
  requireKnown('row', rows, allRows);
  const asked = (row: string) => {
    if (rows.length) return rows.includes(row);
    return !quick || QUICK_ROWS.includes(row) || row === HELD || row === STARTS;
  };
  const stage = (works: readonly Work[], pace: Pace) => ({
    works: works.filter(({ id }) => asked(id)),
    pace,
  });
  const quickPace = { rounds: 1, seconds: 1, warmUpSeconds: 0 };
  return {
    contenders: CONTENDERS.filter(({ id }) => !only.length || only.includes(id)),
    common: stage(COMMON_WORK, quick ? quickPace : { rounds: 5, seconds: 2, warmUpSeconds: 2 }),
    side: stage(side, quick ? quickPace : { rounds: 5, seconds: 1, warmUpSeconds: 1 }),
    heldGenerations: asked(HELD) ? (quick ? 200 : 4000) : 0,
    starts: asked(STARTS) ? (quick ? 2 : 10) : 0,
    idleMs: quick ? 500 : 5000,
  };
}

function requireKnown(kind: string, names: readonly string[], known: readonly string[]): void {
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length)
    throw new Error(`no such ${kind}: ${unknown.join(', ')}; there are ${known.join(', ')}`);
}
