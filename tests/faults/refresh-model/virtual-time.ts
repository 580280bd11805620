/** Time without a clock: a scheduler decides what happens next, and when time passes to the next timer. */

import type { Clock } from '../../../src/gateway/refresh/clock.ts';

const START = Date.UTC(2030, 0, 1);
/** More than any schedule needs that ends. */
const MOST_STEPS = 30_000;
const NOTHING = Promise.resolve();

/** WebCrypto works on other threads, and no scheduler decides when it is done: virtual time stands still until then. */
const encryptions = new Set<Promise<unknown>>();

function counted<Parameters extends unknown[], Result>(work: (...parameters: Parameters) => Promise<Result>) {
  return (...parameters: Parameters): Promise<Result> => {
    const result = work.apply(crypto.subtle, parameters);
    encryptions.add(result);
    const done = () => encryptions.delete(result);
    result.then(done, done);
    return result;
  };
}

crypto.subtle.encrypt = counted(crypto.subtle.encrypt);
crypto.subtle.decrypt = counted(crypto.subtle.decrypt);

/** Decides which of the waiting events happens next: fast-check's scheduler, or one that tries every order. */
export interface Scheduler {
  schedule(task: Promise<void>, label: string): Promise<void>;
  count(): number;
  waitOne(): Promise<void>;
}

/** What a scheduler may have to tell from other events. */
export const NEXT_COMMAND = 'the next command';
export const TIME_PASSES = 'time passes';

/** Thrown when nothing can happen any more, or when it never ends. */
export class Stuck extends Error {}

export class VirtualTime {
  readonly #scheduler: Scheduler;
  #now = START;
  #timers: { readonly dueAt: number; readonly call: () => void }[] = [];
  /** Timers that are due and have not been called yet. */
  #due = 0;
  /** Until when each event must have happened that may happen at any moment. */
  readonly #latest = new Set<{ readonly at: number }>();
  #isPassing = false;
  #steps = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  readonly now = (): number => this.#now;

  /** Something that happens at any moment within so many milliseconds. */
  event(label: string, withinMs: number, happen: () => void): void {
    const latest = { at: this.#now + withinMs };
    this.#latest.add(latest);
    this.#schedule(label, () => {
      this.#latest.delete(latest);
      happen();
    });
  }

  /** Calls the function when its time has come. The returned function cancels that. */
  timer(label: string, ms: number, happen: () => void): () => void {
    let isCancelled = false;
    const call = () => {
      this.#due++;
      this.#schedule(label, () => {
        this.#due--;
        if (!isCancelled) happen();
      });
    };
    const timer = { dueAt: this.#now + Math.ceil(Math.max(0, ms)), call };
    if (timer.dueAt === this.#now) call();
    else this.#timers.push(timer);
    return () => {
      isCancelled = true;
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  get isIdle(): boolean {
    return this.#timers.length === 0 && this.#scheduler.count() === 0;
  }

  /** Lets happen what may happen, one event after the other. */
  async run(isEnough: () => boolean): Promise<void> {
    for (; ; this.#steps++) {
      // Until all that follows from the last event has happened too.
      do {
        await Promise.allSettled(encryptions);
        await new Promise((resolve) => setImmediate(resolve));
      } while (encryptions.size);
      if (isEnough()) return;
      if (this.#steps > MOST_STEPS) throw new Stuck('it never ends');
      this.#offerToPass();
      if (this.#scheduler.count() === 0) throw new Stuck('nothing can happen any more');
      await this.#scheduler.waitOne();
    }
  }

  #schedule(label: string, happen: () => void): void {
    void this.#scheduler.schedule(NOTHING, label).then(happen);
  }

  #offerToPass(): void {
    if (this.#isPassing || !this.#mayPassTo(this.#nextDue())) return;
    this.#isPassing = true;
    this.#schedule(TIME_PASSES, () => {
      this.#isPassing = false;
      // Meanwhile something may have begun that is to happen earlier.
      const next = this.#nextDue();
      if (this.#mayPassTo(next)) this.#passTo(next);
    });
  }

  #nextDue(): number {
    return Math.min(...this.#timers.map(({ dueAt }) => dueAt));
  }

  #mayPassTo(next: number): boolean {
    if (next === Number.POSITIVE_INFINITY || this.#due > 0) return false;
    for (const { at } of this.#latest) if (at < next) return false;
    return true;
  }

  #passTo(next: number): void {
    this.#now = next;
    const due = this.#timers.filter(({ dueAt }) => dueAt <= next);
    this.#timers = this.#timers.filter(({ dueAt }) => dueAt > next);
    for (const { call } of due) call();
  }
}

/** The clock of one process. When the process has crashed, none of its timers fires any more. */
export class ProcessClock implements Clock {
  readonly #time: VirtualTime;
  readonly #name: string;
  readonly #stops = new Set<() => void>();
  readonly now: () => number;
  isAlive = true;

  /** @param aheadMs how far this machine's clock is ahead */
  constructor(time: VirtualTime, name: string, aheadMs: number) {
    this.#time = time;
    this.#name = name;
    this.now = () => time.now() + aheadMs;
  }

  get timers(): number {
    return this.#stops.size;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#timer(`${this.#name} has slept ${ms} ms`, ms, resolve));
  }

  every(ms: number, call: () => void): () => void {
    let stop = () => {};
    const again = () => {
      stop = this.#timer(`${this.#name} each ${ms} ms`, ms, () => {
        again();
        call();
      });
    };
    again();
    return () => stop();
  }

  crash(): void {
    this.isAlive = false;
    for (const stop of this.#stops) stop();
  }

  #timer(label: string, ms: number, call: () => void): () => void {
    if (!this.isAlive) return () => {};
    const cancel = this.#time.timer(label, ms, () => {
      this.#stops.delete(stop);
      call();
    });
    const stop = () => {
      this.#stops.delete(stop);
      cancel();
    };
    this.#stops.add(stop);
    return stop;
  }
}
