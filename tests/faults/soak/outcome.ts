/** What a scenario returns, and how it is shown. */

export type Figures = Readonly<Record<string, number | string>>;

export interface Outcome<Kind extends Figures> {
  readonly figures: Kind;
  /** What is wrong; nothing when all is well. */
  readonly problems: readonly string[];
}

/** Collects problems: the first of a kind are worth reading, the rest are counted. */
export class Problems {
  readonly #most = 10;
  readonly #texts: string[] = [];
  #count = 0;

  add(text: string | undefined): void {
    if (text === undefined) return;
    this.#count++;
    if (this.#texts.length < this.#most) this.#texts.push(text);
  }

  /** Adds what the work throws, and goes on. */
  async during(name: string, work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.add(`${name}: ${error instanceof Error ? error.message : error}`);
    }
  }

  list(): readonly string[] {
    const more = this.#count - this.#texts.length;
    return more > 0 ? [...this.#texts, `and ${more} more`] : this.#texts;
  }
}

/** The value that the share of all values is not above, in milliseconds; NaN when there are none. */
export function percentile(durations: readonly number[], share: number): number {
  const sorted = Float64Array.from(durations).sort();
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return Math.round(value * 100) / 100;
}

export function table({ figures, problems }: Outcome<Figures>): string {
  const width = Math.max(...Object.keys(figures).map((name) => name.length));
  const rows = Object.entries(figures).map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
  return [...rows, ...problems.map((problem) => `  WRONG: ${problem}`)].join('\n');
}
