/** What the upstream answers with, made from a seed, so that a client knows every byte without being told. */

import { createCipheriv } from 'node:crypto';

/** How many different tracks there are: bytes that reach the wrong reader do not go unnoticed. */
export const TRACKS = 4;
export const SMALL_TRACK_BYTES = 64 * 1024;
export const MODELS = JSON.stringify({ models: [{ id: 'composer-1', modality: 'music' }] });

const AUDIO_BYTES = 6 * 1024;
const BLOCK_BYTES = 1024 * 1024;

/** The same bytes for the same seed, in blocks that never repeat: a key stream of AES. */
export function* seededBlocks(seed: string, bytes: number): Generator<Buffer> {
  const key = new Bun.CryptoHasher('sha256').update(seed).digest();
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  for (let left = bytes; left > 0; left -= BLOCK_BYTES) {
    yield cipher.update(Buffer.alloc(Math.min(left, BLOCK_BYTES)));
  }
}

/** The audio of a generation, which is known by its idempotency key. */
export function audioFor(idempotencyKey: string): Buffer {
  return Buffer.alloc(AUDIO_BYTES, `audio for ${idempotencyKey}; `);
}

/** What a stream that waits in the middle consists of. */
export function halvesFor(id: string): [Buffer, Buffer] {
  return [Buffer.alloc(200_000, `first of ${id}; `), Buffer.alloc(200_000, `second of ${id}; `)];
}

export function smallTrack(): Buffer {
  return Buffer.concat([...seededBlocks('small', SMALL_TRACK_BYTES)]);
}

/** Writes the tracks as `0`, `1` and so on into the folder, and gives the SHA-256 of each. */
export async function writeTracks(folder: string, bytes: number): Promise<string[]> {
  const checksums: string[] = [];
  for (let index = 0; index < TRACKS; index++) {
    const hash = new Bun.CryptoHasher('sha256');
    const file = Bun.file(`${folder}/${index}`).writer();
    for (const block of seededBlocks(`track ${index}`, bytes)) {
      hash.update(block);
      file.write(block);
      await file.flush();
    }
    await file.end();
    checksums.push(hash.digest('hex'));
  }
  return checksums;
}
