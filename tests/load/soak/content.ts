/** What the upstream sends, made from a seed, so that a client knows every byte of it. */

import { createCipheriv } from 'node:crypto';

/** Several different tracks, so that bytes that reach the wrong reader are noticed. */
export const TRACKS = 4;
export const MODELS = JSON.stringify({ models: [{ id: 'composer-1', modality: 'music' }] });
const BLOCK_BYTES = 1024 * 1024;

/** Blocks of an AES key stream, which never repeat. */
export function* seededBlocks(seed: string, bytes: number): Generator<Buffer> {
  const key = new Bun.CryptoHasher('sha256').update(seed).digest();
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  for (let left = bytes; left > 0; left -= BLOCK_BYTES) {
    yield cipher.update(Buffer.alloc(Math.min(left, BLOCK_BYTES)));
  }
}

export const SMALL_TRACK = Buffer.concat([...seededBlocks('small', 64 * 1024)]);

export function audioFor(idempotencyKey: string): Buffer {
  return Buffer.alloc(6 * 1024, `audio for ${idempotencyKey}; `);
}

const SLOW_PIECES = 100;

/** What the upstream sends of a generation that takes ten seconds. */
export function slowPieces(key: string): Buffer[] {
  return Array.from({ length: SLOW_PIECES }, (_, piece) => Buffer.alloc(20_000, `${key}, piece ${piece}; `));
}

/** The parts of a stream that waits in the middle. */
export function halvesFor(id: string): [Buffer, Buffer] {
  return [Buffer.alloc(200_000, `first of ${id}; `), Buffer.alloc(200_000, `second of ${id}; `)];
}

export function sha256(...pieces: Buffer[]): string {
  const hash = new Bun.CryptoHasher('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}

/** Large tracks for slow readers, each with its SHA-256. */
export function makeTracks(bytes: number) {
  return Array.from({ length: TRACKS }, (_, index) => {
    const track = Buffer.concat([...seededBlocks(`track ${index}`, bytes)]);
    return { track: new Blob([track]), checksum: sha256(track) };
  });
}
