/** What a load has measured, and what was wrong. */

export interface Report {
  readonly figures: Readonly<Record<string, number>>;
  /** What is wrong; empty when nothing is. */
  readonly problems: readonly string[];
}

const MOST_PROBLEMS = 10;

/** Collects problems. The first ones are worth reading, the rest are counted. */
export class Problems {
  readonly #counts = new Map<string, number>();

  add(text: string): void {
    this.#counts.set(text, (this.#counts.get(text) ?? 0) + 1);
  }

  /** Adds what the work throws, and goes on. */
  async during(name: string, work: Promise<unknown>): Promise<void> {
    await work.catch((error) => this.add(`${name}: ${error instanceof Error ? error.message : error}`));
  }

  list(): readonly string[] {
    const texts = [...this.#counts].map(([text, count]) => (count > 1 ? `${count} x ${text}` : text));
    const more = texts.length - MOST_PROBLEMS;
    return more > 0 ? [...texts.slice(0, MOST_PROBLEMS), `and ${more} more`] : texts;
  }
}

/** The value that the share of all values does not exceed, with one decimal; NaN when there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return Math.round(value * 10) / 10;
}
