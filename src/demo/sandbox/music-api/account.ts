/** One account of the sandbox's upstream: its credits, its recent activity, and its totals for each month. */

import { randomUUID } from 'node:crypto';
import type { SandboxData } from '../../../client/upstream-data.ts';
import { ApiError } from './api-error.ts';

const MAX_ACTIVITY = 100;

export interface Activity {
  type: 'sign_in' | 'generation' | 'visibility' | 'deletion';
  description: string;
  /** Milliseconds since the epoch. */
  at: number;
  creationId?: string;
  /** The price. By default, 0. */
  credits?: number;
}

interface MonthTotals {
  generations: number;
  musicLengthMs: number;
  credits: number;
}

export class Account {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  #credits: number;
  /** Newest first, in the form that the API sends. */
  readonly #activity: object[] = [];
  /** The keys are months in UTC, as `YYYY-MM`. */
  readonly #months = new Map<string, MonthTotals>();

  constructor(identity: { id: string; name: string }, createdAt: number, credits: number) {
    this.id = identity.id;
    this.name = identity.name;
    this.createdAt = createdAt;
    this.#credits = credits;
  }

  /** Deducts the price of a generation. If too few credits are left, throws 402 and deducts nothing. */
  charge(credits: number, musicLengthMs: number, at: number): void {
    if (credits > this.#credits) {
      throw new ApiError(402, `This costs ${credits} credits; ${this.#credits} are left`);
    }
    this.#credits -= credits;
    const month = new Date(at).toISOString().slice(0, 7);
    const totals = this.#totals(month);
    this.#months.set(month, {
      generations: totals.generations + 1,
      musicLengthMs: totals.musicLengthMs + musicLengthMs,
      credits: totals.credits + credits,
    });
  }

  record({ type, description, at, creationId, credits = 0 }: Activity): void {
    this.#activity.unshift({
      id: randomUUID(),
      type,
      description,
      creation_id: creationId ?? null,
      credits,
      created_at: new Date(at).toISOString(),
    });
    this.#activity.splice(MAX_ACTIVITY);
  }

  profile(): SandboxData['profile'] {
    return { id: this.id, name: this.name, created_at: new Date(this.createdAt).toISOString() };
  }

  balance() {
    return { balance: this.#credits, unit: 'credits' };
  }

  activity(): readonly object[] {
    return this.#activity;
  }

  /** @param month as `YYYY-MM`, in UTC */
  summary(month: string) {
    const { generations, musicLengthMs, credits } = this.#totals(month);
    return { month, generations, music_length_ms: musicLengthMs, credits_spent: credits };
  }

  #totals(month: string): MonthTotals {
    return this.#months.get(month) ?? { generations: 0, musicLengthMs: 0, credits: 0 };
  }
}
