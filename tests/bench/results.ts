/** What a run has found. */

import type { Held } from './held.ts';
import type { Measurement } from './measure.ts';
import type { Start } from './starts.ts';

export interface Results {
  readonly date: string;
  readonly machine: string;
  /** Processes that wanted a core before the run began, as the system's one-minute average. */
  readonly loadBefore: number;
  readonly quick: boolean;
  readonly rounds: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly leftOut: readonly string[];
  /** What failed under load. */
  readonly problems: readonly string[];
  readonly measurements: readonly Measurement[];
  readonly held: readonly Held[];
  readonly starts: readonly Start[];
}
