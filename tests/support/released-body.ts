/** A body whose pieces are released one by one by the test. */

export function releasedBody() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  return {
    stream: readable,
    /** Resolves when nobody reads it any more. What is released after this goes nowhere. */
    cancelled: writer.closed.catch(() => {}),
    release: (piece: string | Uint8Array) => void writer.write(Buffer.from(piece)).catch(() => {}),
    end: () => void writer.close().catch(() => {}),
  };
}
