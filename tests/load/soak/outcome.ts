/** What a scenario returns, and how it is printed. */

export type Figures = Readonly<Record<string, number | string>>;

export interface Outcome<Kind extends Figures> {
  readonly figures: Kind;
  /** What is wrong; empty when nothing is. */
  readonly problems: readonly string[];
  /** The figures over time. */
  readonly plot?: string;
}

/** Collects problems. The first ones are worth reading, the rest are counted. */
export class Problems {
  readonly #most = 10;
  readonly #texts: string[] = [];

  add(text: string): void {
    this.#texts.push(text);
  }

  /** Adds what the work throws, and goes on. */
  async during(name: string, work: Promise<unknown>): Promise<void> {
    await work.catch((error) => this.add(`${name}: ${error instanceof Error ? error.message : error}`));
  }

  list(): readonly string[] {
    const more = this.#texts.length - this.#most;
    return more > 0 ? [...this.#texts.slice(0, this.#most), `and ${more} more`] : this.#texts;
  }
}

/** The value that the share of all values does not exceed, with two decimals; NaN when there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return Math.round(value * 100) / 100;
}

export function table({ figures, problems }: Outcome<Figures>): string {
  const width = Math.max(...Object.keys(figures).map((name) => name.length));
  const rows = Object.entries(figures).map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
  return [...rows, ...problems.map((problem) => `  WRONG: ${problem}`)].join('\n');
}
