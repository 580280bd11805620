/** Time without a clock: a scheduler chooses what happens next, and when time passes to the next timer. */

import type { Clock } from '../../../src/gateway/refresh/clock.ts';

export const START = Date.UTC(2030, 0, 1);
/** More than any schedule needs that ends. */
const MOST_STEPS = 30_000;

/** WebCrypto works on other threads, and no scheduler chooses when it is done: virtual time stands still until then. */
const encryptions = new Set<Promise<unknown>>();

for (const name of ['encrypt', 'decrypt'] as const) {
  const work = crypto.subtle[name];
  crypto.subtle[name] = (...parameters: Parameters<typeof work>) => {
    const result = work.apply(crypto.subtle, parameters);
    encryptions.add(result);
    return result.finally(() => encryptions.delete(result));
  };
}

/**
 * Chooses one of so many events. They are in the order in which they began to wait; the next command comes after them,
 * and the passing of time comes last.
 */
export type Scheduler = (step: number, events: number) => number;

/** Thrown when nothing can happen any more, or when it never ends. */
export class Stuck extends Error {}

interface Event {
  /** A timer is due then; an event that may happen at any moment has happened by then. */
  readonly at: number;
  readonly happen: () => unknown;
  /** A timer of a process does not fire any more when the process has crashed. */
  readonly of: ProcessClock | 'the commands' | undefined;
}

export class VirtualTime {
  readonly #choose: Scheduler;
  #events: Event[] = [];
  #timers: Event[] = [];
  #steps = 0;
  now = START;

  constructor(choose: Scheduler) {
    this.#choose = choose;
  }

  get isIdle(): boolean {
    return this.#timers.length + this.#events.length === 0;
  }

  /** Something that happens at any moment within so many milliseconds. */
  event(withinMs: number, happen: () => void): void {
    this.#events.push({ at: this.now + withinMs, happen, of: undefined });
  }

  /** Calls the function when its time has come. The returned function cancels that. */
  timer(ms: number, happen: () => unknown, of?: Event['of']): () => void {
    const timer = { at: this.now + Math.ceil(ms), happen, of };
    (timer.at > this.now ? this.#timers : this.#events).push(timer);
    return () => this.#remove((other) => other === timer);
  }

  crash(process: ProcessClock): void {
    this.#remove((timer) => timer.of === process);
  }

  /** Lets happen what may happen, one event after the other. */
  async run(isEnough: () => boolean): Promise<void> {
    for (;;) {
      // Until all that follows from the last event has happened too.
      do {
        await Promise.allSettled(encryptions);
        await new Promise((resolve) => setImmediate(resolve));
      } while (encryptions.size);
      if (isEnough()) return;
      if (this.#steps > MOST_STEPS) throw new Stuck('it never ends');
      this.#step();
    }
  }

  /** Lets so much time pass, and what is due in it happen. The scheduler may let more happen first. */
  pass(ms: number): Promise<void> {
    return this.wait(new Promise<void>((resolve) => void this.timer(ms, resolve, 'the commands')));
  }

  /** Lets things happen until the promise is settled. */
  async wait<Result>(promise: Promise<Result>): Promise<Result> {
    let isSettled = false;
    const settled = promise.finally(() => (isSettled = true));
    await this.run(() => isSettled);
    return settled;
  }

  #step(): void {
    const next = Math.min(...this.#timers.map(({ at }) => at));
    const mayPass = this.#timers.length > 0 && this.#events.every(({ at }) => at >= next);
    const isCommand = ({ of }: Event) => Number(of === 'the commands');
    const events = this.#events.toSorted((one, other) => isCommand(one) - isCommand(other));
    const choices = events.length + Number(mayPass);
    if (choices === 0) throw new Stuck('nothing can happen any more');
    const event = events[this.#choose(this.#steps++, choices)];
    if (event) {
      this.#remove((other) => other === event);
      event.happen();
    } else {
      this.now = next;
      this.#events.push(...this.#timers.filter(({ at }) => at <= next));
      this.#timers = this.#timers.filter(({ at }) => at > next);
    }
  }

  #remove(isSuch: (event: Event) => boolean): void {
    this.#timers = this.#timers.filter((timer) => !isSuch(timer));
    this.#events = this.#events.filter((event) => !isSuch(event));
  }
}

export class ProcessClock implements Clock {
  readonly #time: VirtualTime;
  readonly #aheadMs: number;
  /** What has reached the process since it stands still. */
  #waiting: (() => void)[] | undefined;
  isAlive = true;

  /** @param aheadMs how far this machine's clock is ahead */
  constructor(time: VirtualTime, aheadMs: number) {
    this.#time = time;
    this.#aheadMs = aheadMs;
  }

  readonly now = (): number => this.#time.now + this.#aheadMs;

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#after(ms, resolve));
  }

  every(ms: number, call: () => void): () => void {
    let stop = () => {};
    let isStopped = false;
    const again = () => {
      stop = this.#after(ms, () => {
        if (isStopped) return;
        again();
        call();
      });
    };
    again();
    return () => {
      isStopped = true;
      stop();
    };
  }

  #after(ms: number, happen: () => void): () => void {
    return this.isAlive ? this.#time.timer(ms, () => this.reach(happen), this) : () => {};
  }

  /** Lets something happen in the process: now, or when it goes on. */
  reach(happen: () => void): void {
    if (this.#waiting) this.#waiting.push(happen);
    else if (this.isAlive) happen();
  }

  /** The process stops, as its machine pauses. Its clock goes on, and what reaches it keeps its order. */
  standStill(ms: number): void {
    const waiting: (() => void)[] = [];
    const goOn = () => {
      this.#waiting = undefined;
      for (const happen of waiting) happen();
    };
    if (this.#waiting) return;
    this.#waiting = waiting;
    this.#time.timer(ms, goOn, this);
  }

  crash(): void {
    this.isAlive = false;
    this.#time.crash(this);
  }
}
