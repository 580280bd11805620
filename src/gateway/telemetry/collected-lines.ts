/** Collects the lines of the log, because a write costs more than a line. */

/** How long a line may wait for others. A process that is killed loses the lines that wait. */
const WINDOW_MS = 100;
const MAX_CHARACTERS = 16 * 1024;

/** Passes a single line on at once, and those that follow it together. */
export class CollectedLines {
  readonly #pass: (lines: string) => void;
  #lines = '';
  #window: Timer | undefined;

  constructor(pass: (lines: string) => void) {
    this.#pass = pass;
  }

  write(line: string): void {
    this.#lines += line;
    if (this.#window && this.#lines.length < MAX_CHARACTERS) return;
    this.flush();
    this.#window ??= setTimeout(() => this.#endWindow(), WINDOW_MS);
  }

  flush(): void {
    if (this.#lines) this.#pass(this.#lines);
    this.#lines = '';
  }

  #endWindow(): void {
    this.#window = undefined;
    if (!this.#lines) return;
    this.flush();
    this.#window = setTimeout(() => this.#endWindow(), WINDOW_MS);
  }
}
