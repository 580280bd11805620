/** Reads a request body of bounded size within bounded time, or begins to: with or without a declared length. */

import type { BodyReservation, RequestBodies } from '../admission/request-bodies.ts';
import type { SessionUse } from '../admission/session-limit.ts';
import { type Chunk, readBounded, readStart } from '../http/body-reader.ts';
import { CLOSE, GatewayError } from '../http/errors.ts';
import { BODY_PATIENCE_MS, MIN_BYTES_PER_SECOND, Upload } from './upload.ts';

const BODY_LIMIT_BYTES = 2 * 1024 * 1024;
/** What the contract bounds. */
const BOUNDED_TYPE = /^application\/(?:[^;]*\+)?json\b|^application\/x-www-form-urlencoded\b/i;

/** The bytes of a body. Disposing of it frees their memory. */
export interface RequestBody extends Disposable {
  readonly bytes: Buffer<ArrayBuffer>;
}

/**
 * Reads the complete body. The caller keeps it as long as it may have to send it again, then disposes of it.
 *
 * @param use of the session that sends it; undefined for a sign-in
 * @throws GatewayError 413 when it is larger than {@link BODY_LIMIT_BYTES}, 408 when it arrives too slowly, 400 when it
 *   is incomplete, 503 when there is no memory for it
 */
export async function readBody(
  request: Request,
  bodies: RequestBodies,
  use?: SessionUse,
): Promise<RequestBody> {
  const declaredBytes = declaredRequestBytes(request);
  if (declaredBytes > BODY_LIMIT_BYTES) throw new GatewayError(413, 'bodyTooLarge');
  const reservation = bodies.open(declaredBytes, use);
  return arrive(bodies, reservation, async (onChunk) => {
    const bytes = await readBounded(request.body, BODY_LIMIT_BYTES, onChunk);
    if (!bytes) throw new GatewayError(413, 'bodyTooLarge');
    return kept(bytes, bodies, reservation);
  });
}

/**
 * Reads a complete body of up to {@link BODY_LIMIT_BYTES}, as {@link readBody} does. One that is longer, and neither JSON
 * nor URL-encoded, becomes an upload.
 *
 * @param limitBytes of an upload; 0 when there are none
 * @throws GatewayError as {@link readBody} does
 */
export async function readBodyOrUpload(
  request: Request,
  bodies: RequestBodies,
  use: SessionUse | undefined,
  limitBytes: number,
): Promise<RequestBody | Upload> {
  const isBounded = BOUNDED_TYPE.test(request.headers.get('content-type') ?? '');
  if (limitBytes <= BODY_LIMIT_BYTES || isBounded || !request.body) return readBody(request, bodies, use);
  const declaredBytes = declaredRequestBytes(request);
  if (declaredBytes > limitBytes) throw new GatewayError(413, 'uploadTooLarge');
  const reader = request.body.getReader();
  const newUpload = (start: readonly Chunk[], reservation: BodyReservation) =>
    new Upload(request, reader, start, limitBytes, bodies, reservation);
  if (declaredBytes > BODY_LIMIT_BYTES) return newUpload([], bodies.openUpload(use));
  const reservation = bodies.open(declaredBytes, use);
  return arrive(bodies, reservation, async (onChunk) => {
    const read = await readStart(reader, BODY_LIMIT_BYTES, onChunk);
    return 'whole' in read ? kept(read.whole, bodies, reservation) : newUpload(read.start, reservation);
  });
}

export function declaredRequestBytes({ headers }: Request): number {
  return Number(headers.get('content-length') ?? 0);
}

function kept(bytes: RequestBody['bytes'], bodies: RequestBodies, reservation: BodyReservation): RequestBody {
  return { bytes, [Symbol.dispose]: () => bodies.release(reservation) };
}

/** Reserves what arrives while `read` reads a body, within bounded time. */
async function arrive<Result>(
  bodies: RequestBodies,
  reservation: BodyReservation,
  read: (onChunk: (bytes: number) => void) => Promise<Result>,
): Promise<Result> {
  let arrivedBytes = 0;
  let timer: Timer | undefined;
  // Bun itself has no deadline for request bodies.
  const checkDeadline = (elapsedMs: number) => {
    const allowedMs = BODY_PATIENCE_MS + Math.floor(arrivedBytes / MIN_BYTES_PER_SECOND) * 1000;
    if (allowedMs > elapsedMs) timer = setTimeout(checkDeadline, allowedMs - elapsedMs, allowedMs);
    else reservation.drop(new GatewayError(408, 'bodyTooSlow', { headers: CLOSE }));
  };
  checkDeadline(0);
  try {
    const onChunk = (bytes: number) => {
      arrivedBytes += bytes;
      bodies.grow(reservation, bytes);
    };
    const result = await Promise.race([read(onChunk), reservation.dropped]);
    bodies.arrived(reservation);
    return result;
  } catch (cause) {
    bodies.release(reservation);
    throw cause instanceof GatewayError ? cause : new GatewayError(400, 'bodyIncomplete', { cause });
  } finally {
    clearTimeout(timer);
  }
}
