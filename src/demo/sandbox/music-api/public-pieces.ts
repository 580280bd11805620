/** Three short public tracks that are there from the start, for those who have not signed in yet. */

import { randomUUID } from 'node:crypto';
import type { Creation } from './library.ts';

const ACCOUNT = 'sandbox';
const LENGTH_MS = 20_000;
const PIECES = {
  'piece-rain': 'Rain on a tin roof',
  'piece-dance': 'A fast dance with drums and brass',
  'piece-lullaby': 'A quiet lullaby on a harp',
};

/** The same in every sandbox, so that a web app can be configured with them. */
export const PIECE_IDS: readonly string[] = Object.keys(PIECES);

export function createPieces(at: number): Creation[] {
  return Object.entries(PIECES).map(([id, prompt]) => ({
    id,
    generationId: randomUUID(),
    accountId: ACCOUNT,
    author: 'Sandbox',
    order: {
      model: 'sandbox-music-2',
      prompt,
      music_length_ms: LENGTH_MS,
      force_instrumental: true,
      is_public: true,
    },
    heard: undefined,
    credits: 0,
    idempotencyKey: null,
    createdAt: at,
    readyAt: at,
    isPublic: true,
    title: prompt,
  }));
}
