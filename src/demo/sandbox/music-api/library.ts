/** Stores the creations of all accounts, without their audio, which is rendered on request. */

import { randomUUID } from 'node:crypto';
import { type Static, Type } from '@sinclair/typebox';
import type { SandboxData } from '../../../client/upstream-data.ts';
import { type StreamOptions, wavSize } from '../audio/wav.ts';
import type { Heard } from '../recording/hearing.ts';
import type { Account } from './account.ts';
import { ApiError } from './api-error.ts';
import { findMusicModel } from './model-catalog.ts';
import { createPieces } from './public-pieces.ts';

const MAX_CREATIONS_PER_ACCOUNT = 200;
/** Of a title that nobody has chosen. */
const TITLE_CHARACTERS = 80;

/** The body of `POST /v1/music`. All five keys are required, and no others are allowed. */
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

/** The body of a PATCH, which changes what it names. */
export const creationChanges = Type.Object(
  {
    is_public: Type.Optional(Type.Boolean()),
    title: Type.Optional(Type.String({ pattern: '\\S', maxLength: 120 })),
  },
  { additionalProperties: false, minProperties: 1 },
);

export interface Creation {
  readonly id: string;
  readonly generationId: string;
  readonly accountId: string;
  readonly author: string;
  readonly order: MusicOrder;
  /** In the recording that it starts from. */
  readonly heard: Heard | undefined;
  readonly credits: number;
  readonly idempotencyKey: string | null;
  readonly createdAt: number;
  /** The time at which the generation is complete, even if its client has disconnected. */
  readyAt: number;
  isPublic: boolean;
  title: string;
}

export type Progress = Required<Pick<StreamOptions, 'pace' | 'sinceMs'>>;

export interface LibraryOptions {
  /** The speed of a generation as a multiple of playback speed. */
  pace: number;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export class Library {
  readonly pace: number;
  readonly #now: () => number;
  /** The keys are ids; the oldest creation is first. */
  readonly #creations = new Map<string, Creation>();
  #accepted = 0;

  constructor({ pace, now }: LibraryOptions) {
    this.pace = pace;
    this.#now = now;
    for (const piece of createPieces(now())) this.#creations.set(piece.id, piece);
  }

  /** The number of creations since the start. */
  get accepted(): number {
    return this.#accepted;
  }

  /**
   * Creates a track and charges the account for it. If the account used the idempotency key before, returns the
   * earlier creation and charges nothing; throws 422 if the order was a different one.
   *
   * @param heard in the recording that the track starts from
   */
  accept(account: Account, order: MusicOrder, idempotencyKey: string | null, heard?: Heard): Creation {
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
      author: account.name,
      order,
      heard,
      credits,
      idempotencyKey,
      createdAt,
      readyAt: createdAt + order.music_length_ms / this.pace,
      isPublic: order.is_public,
      title: order.prompt.slice(0, TITLE_CHARACTERS),
    };
    this.#creations.set(creation.id, creation);
    this.#accepted += 1;
    for (const { id } of earlier.slice(MAX_CREATIONS_PER_ACCOUNT - 1)) this.#creations.delete(id);
    account.record({
      type: 'generation',
      description: creation.title,
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

  /** @throws ApiError 404 if the account has no such creation */
  find(account: Account, id: string): Creation {
    const creation = this.#creations.get(id);
    if (creation?.accountId !== account.id) throw new ApiError(404, 'There is no such creation');
    return creation;
  }

  /** @throws ApiError 404 if there is no such public creation */
  findPublic(id: string): Creation {
    const creation = this.#creations.get(id);
    if (!creation?.isPublic) throw new ApiError(404, 'There is no such public creation');
    return creation;
  }

  change(account: Account, creation: Creation, changes: Static<typeof creationChanges>): void {
    const { is_public: isPublic = creation.isPublic, title = creation.title } = changes;
    creation.title = title.trim();
    if (isPublic === creation.isPublic) return;
    creation.isPublic = isPublic;
    const { id: creationId, title: description } = creation;
    account.record({ type: 'visibility', description, at: this.#now(), creationId });
  }

  /** @throws ApiError 409 while its audio is being generated */
  delete(account: Account, creation: Creation): void {
    if (!this.isReady(creation)) throw new ApiError(409, 'This creation is still being generated');
    this.#creations.delete(creation.id);
    account.record({ type: 'deletion', description: creation.title, at: this.#now() });
  }

  isReady(creation: Creation): boolean {
    return this.#now() >= creation.readyAt;
  }

  /** How its audio can be streamed: all of it at once, or what has been made so far, and then the rest at its pace. */
  progress(creation: Creation): Progress {
    if (this.isReady(creation)) return { pace: Number.POSITIVE_INFINITY, sinceMs: 0 };
    return { pace: this.pace, sinceMs: this.#now() - creation.createdAt };
  }

  /** Marks a creation as ready once it is fully streamed, which may be slightly before `readyAt`. */
  finish(creation: Creation): void {
    creation.readyAt = Math.min(creation.readyAt, this.#now());
  }

  /** The form in which the API sends a creation. */
  describe(creation: Creation): SandboxData['creation'] {
    const { order } = creation;
    return {
      id: creation.id,
      generation_id: creation.generationId,
      status: this.isReady(creation) ? 'ready' : 'generating',
      title: creation.title,
      author: creation.author,
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
