/** What a load has measured, and what was wrong. */

export interface Report {
  readonly figures: Readonly<Record<string, number>>;
  /** What is wrong; empty when nothing is. */
  readonly problems: readonly string[];
}

const MOST_PROBLEMS = 10;

/** Keeps each problem once. The first ones are worth reading. */
export class Problems extends Set<string> {
  /** Adds what the work throws, and goes on. */
  async during(name: string, work: Promise<unknown>): Promise<void> {
    await work.catch((error) => this.add(`${name}: ${error instanceof Error ? error.message : error}`));
  }

  list(): readonly string[] {
    const more = this.size - MOST_PROBLEMS;
    return more > 0 ? [...[...this].slice(0, MOST_PROBLEMS), `and ${more} more`] : [...this];
  }
}

/** The value that the share of all values does not exceed, with one decimal; NaN when there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return Math.round(value * 10) / 10;
}
