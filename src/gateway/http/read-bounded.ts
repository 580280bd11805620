/** Reads a body of unknown size, up to a bound. */

/** Beyond this many pieces their number costs more than their bytes: nobody sends a body so by mistake. */
const MAX_CHUNKS = 16_384;

/** All bytes of the body, or undefined when there are more than `limitBytes`; the rest is given up. */
export async function readBounded(
  body: ReadableStream<Uint8Array> | null,
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
