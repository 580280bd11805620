/** Time without a clock: fast-check's scheduler decides what happens next, and when time passes to the next timer. */

import type { Scheduler } from 'fast-check';
import type { Clock } from '../../../src/gateway/refresh/clock.ts';

const START = Date.UTC(2030, 0, 1);
/** More than any schedule needs that ends. */
const MOST_STEPS = 30_000;
const NOTHING = Promise.resolve();

interface Timer {
  readonly due: number;
  readonly call: () => void;
}

/** Thrown when nothing can happen any more, or when it never ends. */
export class Stuck extends Error {}

export class VirtualTime {
  readonly #scheduler: Scheduler;
  #now = START;
  #timers: Timer[] = [];
  /** Timers that are due and have not been called yet. */
  #due = 0;
  /** Until when each event must have happened that may happen at any moment. */
  readonly #latest = new Set<{ readonly at: number }>();
  #isPassing = false;
  #order = 0;
  steps = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  readonly now = (): number => this.#now;

  /** Numbers what happens: of two things at the same time, the one with the smaller number came first. */
  moment(): Moment {
    return { at: this.#now, order: ++this.#order };
  }

  /** Something that happens at any moment within so many milliseconds. */
  event(label: string, withinMs: number, happen: () => void): void {
    const latest = { at: this.#now + withinMs };
    this.#latest.add(latest);
    this.#schedule(label, () => {
      this.#latest.delete(latest);
      happen();
    });
  }

  /** Calls the function when its time has come; what it returns takes it back. */
  timer(label: string, ms: number, call: () => void): () => void {
    let isTaken = false;
    const run = () => {
      this.#due++;
      this.#schedule(label, () => {
        this.#due--;
        if (!isTaken) call();
      });
    };
    const timer = { due: this.#now + Math.ceil(Math.max(0, ms)), call: run };
    this.#timers.push(timer);
    return () => {
      isTaken = true;
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Whether nothing is to happen any more. */
  get isIdle(): boolean {
    return this.#timers.length === 0 && this.#scheduler.count() === 0;
  }

  /** Lets happen what may happen, one after the other, until it is enough. */
  async run(isEnough: () => boolean): Promise<void> {
    for (; ; this.steps++) {
      // Until all that follows from the last event has happened too.
      await new Promise((resolve) => setImmediate(resolve));
      if (isEnough()) return;
      if (this.steps > MOST_STEPS) throw new Stuck('it never ends');
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
    this.#schedule('time passes', () => {
      this.#isPassing = false;
      // Meanwhile something may have begun that is to happen earlier.
      const next = this.#nextDue();
      if (this.#mayPassTo(next)) this.#pass(next);
    });
  }

  #nextDue(): number {
    return this.#timers.reduce((earliest, { due }) => Math.min(earliest, due), Number.POSITIVE_INFINITY);
  }

  #mayPassTo(next: number): boolean {
    if (next === Number.POSITIVE_INFINITY || this.#due > 0) return false;
    for (const { at } of this.#latest) if (at < next) return false;
    return true;
  }

  #pass(next: number): void {
    this.#now = next;
    const due = this.#timers.filter((timer) => timer.due <= next);
    this.#timers = this.#timers.filter((timer) => timer.due > next);
    for (const { call } of due) call();
  }
}

export interface Moment {
  /** In virtual milliseconds. */
  readonly at: number;
  readonly order: number;
}

/** The clock of one process: when the process has crashed, nothing of it happens any more. */
export class ProcessClock implements Clock {
  readonly #time: VirtualTime;
  readonly #name: string;
  readonly #stops = new Set<() => void>();
  readonly now: () => number;
  isAlive = true;

  constructor(time: VirtualTime, name: string) {
    this.#time = time;
    this.#name = name;
    this.now = time.now;
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

  get timers(): number {
    return this.#stops.size;
  }

  crash(): void {
    this.isAlive = false;
    for (const stop of this.#stops) stop();
    this.#stops.clear();
  }

  #timer(label: string, ms: number, call: () => void): () => void {
    if (!this.isAlive) return () => {};
    const take = this.#time.timer(label, ms, () => {
      this.#stops.delete(stop);
      call();
    });
    const stop = () => {
      this.#stops.delete(stop);
      take();
    };
    this.#stops.add(stop);
    return stop;
  }
}
