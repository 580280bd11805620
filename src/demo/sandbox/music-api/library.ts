/** The music creations of all accounts, kept as what they are made from; their audio is rendered when asked for. */

import { randomUUID } from 'node:crypto';
import { type Static, Type } from '@sinclair/typebox';
import { wavSize } from '../audio/wav.ts';
import type { Account } from './account.ts';
import { ApiError } from './api-error.ts';
import { findMusicModel } from './model-catalog.ts';

const MAX_CREATIONS_PER_ACCOUNT = 200;

/** The body of `POST /v1/music`: exactly these five keys. */
export const musicOrder = Type.Object(
  {
    model: Type.String({ minLength: 1, maxLength: 120 }),
    prompt: Type.String({ minLength: 1, maxLength: 4_100 }),
    music_length_ms: Type.Integer({ minimum: 3_000, maximum: 600_000 }),
    force_instrumental: Type.Boolean(),
    is_public: Type.Boolean(),
  },
  { additionalProperties: false },
);
export type MusicOrder = Static<typeof musicOrder>;

export interface Creation {
  readonly id: string;
  readonly generationId: string;
  readonly accountId: string;
  readonly order: MusicOrder;
  readonly credits: number;
  readonly idempotencyKey: string | null;
  readonly createdAt: number;
  /** The generation goes on by the clock, whether or not its caller still listens. */
  readyAt: number;
  isPublic: boolean;
}

export interface LibraryOptions {
  /** How many times faster than it plays a track is generated. */
  pace: number;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export class Library {
  readonly pace: number;
  readonly #now: () => number;
  /** By id, oldest first. */
  readonly #creations = new Map<string, Creation>();
  #accepted = 0;

  constructor({ pace, now }: LibraryOptions) {
    this.pace = pace;
    this.#now = now;
  }

  /** How many orders became a creation so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /**
   * Accepts an order and charges the account for it. The same idempotency key gives the earlier creation again
   * and charges nothing; with another order it is refused.
   */
  accept(account: Account, order: MusicOrder, idempotencyKey: string | null): Creation {
    const earlier = this.list(account);
    const replayed = earlier.find((creation) => creation.idempotencyKey === idempotencyKey);
    if (idempotencyKey !== null && replayed !== undefined) {
      if (Bun.deepEquals(replayed.order, order)) return replayed;
      throw new ApiError(422, 'This Idempotency-Key was used for another order');
    }

    const model = findMusicModel(order.model);
    if (model === undefined) throw new ApiError(422, `The model "${order.model}" does not make music`);
    const credits = Math.ceil((order.music_length_ms / 1_000) * model.credits_per_second);
    const createdAt = this.#now();
    account.charge(credits, order.music_length_ms, createdAt);

    const creation: Creation = {
      id: randomUUID(),
      generationId: randomUUID(),
      accountId: account.id,
      order,
      credits,
      idempotencyKey,
      createdAt,
      readyAt: createdAt + order.music_length_ms / this.pace,
      isPublic: order.is_public,
    };
    this.#creations.set(creation.id, creation);
    this.#accepted += 1;
    for (const { id } of earlier.slice(MAX_CREATIONS_PER_ACCOUNT - 1)) this.#creations.delete(id);
    account.record({
      type: 'generation',
      description: order.prompt.slice(0, 80),
      at: createdAt,
      creationId: creation.id,
      credits,
    });
    return creation;
  }

  /** Newest first. */
  list(account: Account): Creation[] {
    return [...this.#creations.values()].filter(({ accountId }) => accountId === account.id).reverse();
  }

  /** Throws 404 unless the account has such a creation. */
  find(account: Account, id: string): Creation {
    const creation = this.#creations.get(id);
    if (creation?.accountId !== account.id) throw new ApiError(404, 'There is no such creation');
    return creation;
  }

  /** Throws 404 unless anybody may hear this creation. */
  findPublic(id: string): Creation {
    const creation = this.#creations.get(id);
    if (!creation?.isPublic) throw new ApiError(404, 'There is no such public creation');
    return creation;
  }

  setPublic(account: Account, creation: Creation, isPublic: boolean): void {
    creation.isPublic = isPublic;
    account.record({
      type: 'visibility',
      description: isPublic ? 'Made public' : 'Made private',
      at: this.#now(),
      creationId: creation.id,
    });
  }

  isReady(creation: Creation): boolean {
    return this.#now() >= creation.readyAt;
  }

  /** For when the last byte is out: a stream may be done a little before the clock says so. */
  finish(creation: Creation): void {
    creation.readyAt = Math.min(creation.readyAt, this.#now());
  }

  /** The creation as the API shows it. */
  describe(creation: Creation) {
    const { order } = creation;
    return {
      id: creation.id,
      generation_id: creation.generationId,
      status: this.isReady(creation) ? 'ready' : 'generating',
      model: order.model,
      prompt: order.prompt,
      music_length_ms: order.music_length_ms,
      force_instrumental: order.force_instrumental,
      is_public: creation.isPublic,
      credits: creation.credits,
      content_type: 'audio/wav',
      size_bytes: wavSize(order.music_length_ms),
      created_at: new Date(creation.createdAt).toISOString(),
    };
  }
}
