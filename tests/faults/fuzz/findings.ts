/** What a run has found, with all that is needed to see it again. */

import { type FuzzRequest, printable } from './fuzz-request.ts';

/** Enough to see a pattern; then the run ends. */
const MOST_FINDINGS = 10;

export class Findings {
  readonly #seed: number;
  readonly #texts: string[] = [];

  constructor(seed: number) {
    this.#seed = seed;
  }

  get texts(): readonly string[] {
    return this.#texts;
  }

  get isFull(): boolean {
    return this.#texts.length >= MOST_FINDINGS;
  }

  /** `evidence` is what was sent or received, byte for byte; `carried` the indexes on its connection. */
  add(
    problem: string,
    request: FuzzRequest | undefined,
    evidence = '',
    carried: readonly number[] = [],
  ): void {
    if (this.isFull) return;
    const about = request
      ? [
          `request ${request.index} (${request.kind}): ${printable(request.bytes)}`,
          `sent in ${request.cuts.length + 1} pieces, on a connection that carried ${carried.join(', ')}`,
        ]
      : [];
    const seen = evidence === '' ? [] : [`evidence: ${printable(evidence)}`];
    this.#texts.push([problem, `seed ${this.#seed}`, ...about, ...seen].join('\n  '));
  }
}
