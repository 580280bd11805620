/** Keeps the orders of a tab until their outcome is known, so that a reload neither loses a track nor pays for it twice. */

import { isRecord } from './gateway-request.ts';
import type { GenerationOrder } from './generation.ts';
import type { SignInStorage } from './sign-in.ts';

export interface UnfinishedGeneration {
  readonly order: GenerationOrder;
  readonly idempotencyKey: string;
  /** Null until the response to the order has begun. */
  readonly creationId: string | null;
}

const STORAGE_KEY = 'music-gateway.generations';

/** What an account has not finished; another account of the same tab must not pay for it. */
export class UnfinishedGenerations {
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

  /** The oldest first. */
  list(): readonly UnfinishedGeneration[] {
    const entries = parseJson(this.#storage.getItem(this.#key) ?? '');
    return Array.isArray(entries) ? entries.filter(isUnfinishedGeneration) : [];
  }

  /** Replaces what is kept under the same key. Keeps nothing in a storage that is full: a track needs none. */
  keep(generation: UnfinishedGeneration): void {
    this.#store([...this.#others(generation.idempotencyKey), generation]);
  }

  forget(idempotencyKey: string): void {
    this.#store(this.#others(idempotencyKey));
  }

  #others(idempotencyKey: string): readonly UnfinishedGeneration[] {
    return this.list().filter((other) => other.idempotencyKey !== idempotencyKey);
  }

  #store(generations: readonly UnfinishedGeneration[]): void {
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

function isUnfinishedGeneration(value: unknown): value is UnfinishedGeneration {
  if (!isRecord(value) || !isRecord(value['order'])) return false;
  const { order, idempotencyKey, creationId } = value;
  return (
    typeof order['model'] === 'string' &&
    typeof order['prompt'] === 'string' &&
    typeof order['music_length_ms'] === 'number' &&
    typeof idempotencyKey === 'string' &&
    (creationId === null || typeof creationId === 'string')
  );
}
