/**
 * Collects the lines of the log, because a write costs more than a line. With pino's own buffer (`minLength`), a process
 * whose reader of the log has gone would never end after a crash; its `periodicFlush` writes even when there is no line.
 */

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
    this.#passOn();
  }

  flush(): void {
    const lines = this.take();
    if (lines) this.#pass(lines);
  }

  /** Returns the lines that wait, to be passed on in another way. */
  take(): string {
    const lines = this.#lines;
    this.#lines = '';
    return lines;
  }

  #passOn(): void {
    this.flush();
    this.#window ??= setTimeout(() => {
      this.#window = undefined;
      if (this.#lines) this.#passOn();
    }, WINDOW_MS);
  }
}
