/** Those that wait for room, in order of arrival. To wait, to be served and to give up take constant time. */

/** Reserves what it needs and returns true, or returns false. */
export type Attempt = () => boolean;

interface Waiting {
  readonly attempt: Attempt;
  /** Undefined when it has given up. */
  resolve: ((succeeded: boolean) => void) | undefined;
  next: Waiting | undefined;
}

export class WaitingLine {
  readonly #most: number;
  #first: Waiting | undefined;
  #last: Waiting | undefined;
  #length = 0;

  /** @param most how many may wait; each keeps its request in memory */
  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves to whether the attempt has succeeded in time; at once to false when too many wait. */
  wait(attempt: Attempt, patienceMs: number): Promise<boolean> {
    if (patienceMs <= 0 || this.#length >= this.#most) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiting: Waiting = { attempt, resolve: undefined, next: undefined };
    const timer = setTimeout(() => {
      waiting.resolve = undefined;
      resolve(false);
      // It is nearly always the first, because nearly all are equally patient.
      this.#skipGivenUp();
    }, patienceMs);
    waiting.resolve = (succeeded) => {
      clearTimeout(timer);
      resolve(succeeded);
    };
    if (this.#last) this.#last.next = waiting;
    else this.#first = waiting;
    this.#last = waiting;
    this.#length++;
    return promise;
  }

  /** Serves from the front, until one has no room. */
  serve(): void {
    for (;;) {
      this.#skipGivenUp();
      const first = this.#first;
      if (!first?.attempt()) return;
      this.#shift(first);
      first.resolve?.(true);
    }
  }

  #skipGivenUp(): void {
    while (this.#first && !this.#first.resolve) this.#shift(this.#first);
  }

  #shift(first: Waiting): void {
    this.#length--;
    this.#first = first.next;
    if (!first.next) this.#last = undefined;
  }
}
