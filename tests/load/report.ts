/** What a load has measured and what was wrong, for a test and as text. */

export type Figures = Readonly<Record<string, number | string>>;

export interface Report {
  readonly figures: Figures;
  /** What is wrong; empty when nothing is. */
  readonly problems: readonly string[];
}

const MOST_PROBLEMS = 10;

/** Collects problems. The first ones are worth reading, the rest are counted. */
export class Problems {
  readonly #texts: string[] = [];

  add(text: string): void {
    this.#texts.push(text);
  }

  /** Adds what the work throws, and goes on. */
  async during(name: string, work: Promise<unknown>): Promise<void> {
    await work.catch((error) => this.add(`${name}: ${error instanceof Error ? error.message : error}`));
  }

  list(): readonly string[] {
    const more = this.#texts.length - MOST_PROBLEMS;
    return more > 0 ? [...this.#texts.slice(0, MOST_PROBLEMS), `and ${more} more`] : this.#texts;
  }
}

/** The value that the share of all values does not exceed, with two decimals; NaN when there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return Math.round(value * 100) / 100;
}

/** How much a value of one process has grown, from the second quarter of its samples to the last. */
export function growth(values: readonly number[]): number {
  const quarter = Math.floor(values.length / 4);
  const [early, late] = [values.slice(quarter, 2 * quarter), values.slice(-quarter)];
  return quarter > 0 ? Math.round((percentile(late, 0.5) - percentile(early, 0.5)) * 10) / 10 : 0;
}

export function table({ figures, problems }: Report): string {
  const width = Math.max(...Object.keys(figures).map((name) => name.length));
  const rows = Object.entries(figures).map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
  return [...rows, ...problems.map((problem) => `  WRONG: ${problem}`)].join('\n');
}
