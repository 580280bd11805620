/** Keeps what was heard in the recordings of all accounts. The audio itself is not needed any more, and not kept. */

import { randomUUID } from 'node:crypto';
import { type Heard, hear } from '../recording/hearing.ts';
import { UnusableRecording } from '../recording/wav-samples.ts';
import type { Account } from './account.ts';
import { ApiError } from './api-error.ts';

const MAX_REFERENCES_PER_ACCOUNT = 8;
const MAX_NAME_CHARACTERS = 120;
const TONICS = ['C', 'C♯', 'D', 'E♭', 'E', 'F', 'F♯', 'G', 'A♭', 'A', 'B♭', 'B'];

export interface Reference {
  readonly id: string;
  readonly name: string;
  readonly seconds: number;
  readonly heard: Heard;
  readonly createdAt: number;
  /** Whether the account's next tracks start from it. At most one of them. */
  isChosen: boolean;
}

export class References {
  readonly #now: () => number;
  /** By account id; the oldest is first. */
  readonly #references = new Map<string, Reference[]>();

  /** @param now milliseconds since the epoch */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Adds a recording, and chooses it. The oldest makes room. @throws ApiError 422 with what is wrong in words */
  add(account: Account, name: string, file: Buffer): Reference {
    const { seconds, ...heard } = hearOrRefuse(file);
    const reference: Reference = {
      id: randomUUID(),
      name: name.slice(0, MAX_NAME_CHARACTERS),
      ...{ seconds, heard, createdAt: this.#now(), isChosen: false },
    };
    const own = [...this.#of(account), reference].slice(-MAX_REFERENCES_PER_ACCOUNT);
    this.#references.set(account.id, own);
    this.choose(account, reference, true);
    return reference;
  }

  /** Newest first. */
  list(account: Account): readonly Reference[] {
    return this.#of(account).toReversed();
  }

  /** @throws ApiError 404 if the account has no such recording */
  find(account: Account, id: string): Reference {
    const reference = this.#of(account).find((each) => each.id === id);
    if (!reference) throw new ApiError(404, 'There is no such recording');
    return reference;
  }

  chosen(account: Account): Reference | undefined {
    return this.#of(account).find(({ isChosen }) => isChosen);
  }

  choose(account: Account, reference: Reference, isChosen: boolean): void {
    for (const each of this.#of(account)) if (isChosen) each.isChosen = false;
    reference.isChosen = isChosen;
  }

  delete(account: Account, reference: Reference): void {
    const others = this.#of(account).filter((each) => each !== reference);
    this.#references.set(account.id, others);
  }

  /** The form in which the API sends a recording. */
  describe({ id, name, seconds, heard: { key, tempo }, createdAt, isChosen }: Reference) {
    return {
      ...{ id, name, length_ms: Math.round(seconds * 1_000), is_chosen: isChosen },
      key: key ? { tonic: TONICS[key.tonic], mode: key.mode } : null,
      tempo_bpm: tempo ?? null,
      created_at: new Date(createdAt).toISOString(),
    };
  }

  #of({ id }: Account): readonly Reference[] {
    return this.#references.get(id) ?? [];
  }
}

function hearOrRefuse(file: Buffer) {
  try {
    return hear(file);
  } catch (error) {
    throw error instanceof UnusableRecording ? new ApiError(422, error.message) : error;
  }
}
