/** A body whose pieces are released one by one by the test. */

export function releasedBody() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const cancelled = Promise.withResolvers<void>();
  const stream = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given;
    },
    cancel: () => {
      // What is released after this goes nowhere.
      controller = undefined;
      cancelled.resolve();
    },
  });
  return {
    stream,
    cancelled: cancelled.promise,
    release: (piece: string | Uint8Array) => controller?.enqueue(Buffer.from(piece)),
    end: () => controller?.close(),
  };
}
