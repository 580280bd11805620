/** A replay store whose records are written as in Redis: 'ended:1' instead of `{ kind: 'ended', clearsFrom: 1 }`. */

import type { Budget } from '../../src/gateway/http/admission/budget.ts';
import { MemoryReplayStore } from '../../src/gateway/refresh/memory-store.ts';
import type { Ended, TokenRecord } from '../../src/gateway/refresh/record.ts';
import { encodeRecord, parseRecord } from '../../src/gateway/refresh/redis-commands.ts';
import type { ReplayStore, SignOutLifetimes } from '../../src/gateway/refresh/store.ts';

export class TextStore<Store extends ReplayStore> {
  readonly store: Store;

  constructor(store: Store) {
    this.store = store;
  }

  async add(key: string, record: string, lifetimeMs: number): Promise<string | undefined> {
    return textOf(await this.store.add(key, parseRecord(record), lifetimeMs));
  }

  replace(key: string, expected: string, record: string, lifetimeMs: number): Promise<boolean> {
    return this.store.replace(key, parseRecord(expected), parseRecord(record), lifetimeMs);
  }

  async end(
    key: string,
    ended: string,
    lifetimes: SignOutLifetimes,
    hasWorked?: boolean,
  ): Promise<string | undefined> {
    return textOf(await this.store.end(key, parseEnded(ended), lifetimes, hasWorked));
  }

  async get(key: string): Promise<string | undefined> {
    return textOf(await this.store.get(key));
  }

  markIssued(key: string, lifetimeMs: number): Promise<void> {
    return this.store.markIssued(key, lifetimeMs);
  }
}

export class TextMemoryStore extends TextStore<MemoryReplayStore> {
  constructor(now: () => number, ledger: Budget) {
    super(new MemoryReplayStore(ledger, now));
  }

  entries() {
    return this.store.entries();
  }

  hasWorked(key: string): boolean {
    return this.store.hasWorked(key);
  }
}

function parseEnded(text: string): Ended {
  const record = parseRecord(text);
  if (record.kind !== 'ended') throw new Error(`"${text}" is not a sign-out`);
  return record;
}

function textOf(record: TokenRecord | undefined): string | undefined {
  return record && encodeRecord(record);
}
