/** Reads a request body of bounded size within bounded time, with or without a declared length. */

import type { RequestBodies } from '../admission/request-bodies.ts';
import type { SessionUse } from '../admission/session-limit.ts';
import { readBounded } from '../http/body-reader.ts';
import { CLOSE, GatewayError } from '../http/errors.ts';

const BODY_LIMIT_BYTES = 2 * 1024 * 1024;
/** How long a body may take: this, plus a second for each {@link MIN_BYTES_PER_SECOND} received. */
const MIN_DEADLINE_MS = 25_000;
const MIN_BYTES_PER_SECOND = 16 * 1024;

/** The bytes of a body. Disposing of it frees their memory. */
export interface RequestBody extends Disposable {
  readonly bytes: Buffer<ArrayBuffer>;
}

/**
 * Reads the complete body. The caller keeps it as long as it may have to send it again, then disposes of it.
 *
 * @param session who sends it; undefined for a sign-in
 * @throws GatewayError 413 when it is larger than {@link BODY_LIMIT_BYTES}, 408 when it arrives too slowly, 400 when it
 *   is incomplete, 503 when there is no memory for it
 */
export async function readBody(
  request: Request,
  bodies: RequestBodies,
  session?: SessionUse,
): Promise<RequestBody> {
  const declaredBytes = Number(request.headers.get('content-length') ?? 0);
  if (declaredBytes > BODY_LIMIT_BYTES) throw new GatewayError(413, 'bodyTooLarge');
  const reservation = bodies.open(declaredBytes, session);
  let arrivedBytes = 0;
  let timer: Timer | undefined;
  // Bun itself has no deadline for request bodies.
  const checkDeadline = (elapsedMs: number) => {
    const allowedMs = MIN_DEADLINE_MS + Math.floor(arrivedBytes / MIN_BYTES_PER_SECOND) * 1000;
    if (allowedMs > elapsedMs) timer = setTimeout(checkDeadline, allowedMs - elapsedMs, allowedMs);
    else reservation.drop(new GatewayError(408, 'bodyTooSlow', { headers: CLOSE }));
  };
  checkDeadline(0);
  try {
    const onChunk = (bytes: number) => {
      arrivedBytes += bytes;
      bodies.grow(reservation, bytes);
    };
    const reading = readBounded(request.body, BODY_LIMIT_BYTES, onChunk);
    const bytes = await Promise.race([reading, reservation.dropped]);
    if (!bytes) throw new GatewayError(413, 'bodyTooLarge');
    bodies.arrived(reservation);
    return { bytes, [Symbol.dispose]: () => bodies.release(reservation) };
  } catch (cause) {
    bodies.release(reservation);
    throw cause instanceof GatewayError ? cause : new GatewayError(400, 'bodyIncomplete', { cause });
  } finally {
    clearTimeout(timer);
  }
}
