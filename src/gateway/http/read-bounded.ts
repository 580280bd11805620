/** Reads a body of unknown size, up to a bound. */

/** Each chunk also costs memory of its own. No normal client sends so many. */
const MAX_CHUNKS = 16_384;

/** Returns all bytes; undefined, after cancelling the rest, for more than `limitBytes` or {@link MAX_CHUNKS} chunks. */
export async function readBounded(
  body: AsyncIterable<Uint8Array> | null,
  limitBytes: number,
  onChunk?: (bytes: number) => void,
): Promise<Buffer<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    onChunk?.(chunk.byteLength);
    size += chunk.byteLength;
    if (size > limitBytes || chunks.push(chunk) > MAX_CHUNKS) return undefined;
  }
  return Buffer.concat(chunks);
}
