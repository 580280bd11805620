/** Keeps the orders of a tab until their outcome is known, so that a reload neither loses a track nor pays for it twice. */

import { isRecord } from './gateway-request.ts';
import type { GenerationOrder, OwnFormPath } from './generation-order.ts';
import type { SignInStorage } from './sign-in.ts';

export interface UnfinishedGeneration<Order extends object = GenerationOrder> {
  readonly order: Order;
  /** That of an order of the upstream's own form. */
  readonly path?: OwnFormPath | undefined;
  readonly idempotencyKey: string;
  /** Null until the response to the order has begun. */
  readonly creationId: string | null;
}

/** With the time at which it was kept first, by the clock of the device. */
interface StoredGeneration<Order extends object> extends UnfinishedGeneration<Order> {
  readonly since: number;
}

const STORAGE_KEY = 'music-gateway.generations';
/**
 * Browsers restore a closed tab with its storage, days later too. An upstream may not know the key by then, and nobody
 * would expect an order.
 */
const LONGEST_MS = 3_600_000;

/** What this page takes up, until its outcome is known. Of the page, because a component may make its object twice. */
const takenUp = new Map<string, Promise<string | null>>();

/**
 * What an account has not finished; another account of the same tab must not pay for it. The app says which form its
 * orders have when that is the upstream's own.
 */
export class UnfinishedGenerations<Order extends object = GenerationOrder> {
  readonly #storage: SignInStorage;
  readonly #key: string;

  /**
   * @param account identifies the account that is signed in, such as the id in its profile
   * @param storage the tab's `sessionStorage`: the prompts then never leave the tab
   */
  constructor(account: string, storage: SignInStorage) {
    this.#key = `${STORAGE_KEY}.${account}`;
    this.#storage = storage;
  }

  /** The oldest first, and none that is older than an hour. */
  list(): readonly UnfinishedGeneration<Order>[] {
    return this.#stored().map(({ since, ...generation }) => generation);
  }

  /** Replaces what is kept under the same key. Keeps nothing in a storage that is full: a track needs none. */
  keep(generation: UnfinishedGeneration<Order>): void {
    const isSame = ({ idempotencyKey }: StoredGeneration<Order>) =>
      idempotencyKey === generation.idempotencyKey;
    const since = this.#stored().find(isSame)?.since ?? Date.now();
    this.#store([...this.#others(generation.idempotencyKey), { ...generation, since }]);
  }

  forget(idempotencyKey: string): void {
    this.#store(this.#others(idempotencyKey));
  }

  /**
   * Does the work for each one, and returns the ids of their creations. Called again meanwhile, as by React's StrictMode,
   * it waits for the work of the first call.
   */
  takeUp(
    work: (generation: UnfinishedGeneration<Order>) => Promise<string | null>,
  ): Promise<(string | null)[]> {
    return Promise.all(this.list().map((generation) => this.#once(generation, work)));
  }

  #once(
    generation: UnfinishedGeneration<Order>,
    work: Parameters<typeof this.takeUp>[0],
  ): Promise<string | null> {
    const key = `${this.#key} ${generation.idempotencyKey}`;
    const taken = takenUp.get(key) ?? work(generation).finally(() => takenUp.delete(key));
    takenUp.set(key, taken);
    return taken;
  }

  #others(idempotencyKey: string): readonly StoredGeneration<Order>[] {
    return this.#stored().filter((other) => other.idempotencyKey !== idempotencyKey);
  }

  #stored(): readonly StoredGeneration<Order>[] {
    const entries = parseJson(this.#storage.getItem(this.#key) ?? '');
    if (!Array.isArray(entries)) return [];
    // A clock that was set back must not make an entry last.
    return entries
      .filter(isStoredGeneration<Order>)
      .filter(({ since }) => Math.abs(Date.now() - since) < LONGEST_MS);
  }

  #store(generations: readonly StoredGeneration<Order>[]): void {
    try {
      if (generations.length > 0) this.#storage.setItem(this.#key, JSON.stringify(generations));
      else this.#storage.removeItem(this.#key);
    } catch {
      // What was stored before stays. It is repeated under the same key at worst, which is not paid for twice.
    }
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isStoredGeneration<Order extends object>(value: unknown): value is StoredGeneration<Order> {
  if (!isRecord(value) || !isRecord(value['order'])) return false;
  const { order, path, idempotencyKey, creationId, since } = value;
  return (
    typeof since === 'number' &&
    (path === undefined ? isGenerationOrder(order) : typeof path === 'string') &&
    typeof idempotencyKey === 'string' &&
    (creationId === null || typeof creationId === 'string')
  );
}

function isGenerationOrder({ model, prompt, music_length_ms }: Readonly<Record<string, unknown>>): boolean {
  return typeof model === 'string' && typeof prompt === 'string' && typeof music_length_ms === 'number';
}
