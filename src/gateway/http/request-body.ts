/** Reads a request body of bounded size within bounded time, with or without a declared length. */

import type { BodyShare, RequestBodies } from './admission/request-bodies.ts';
import { CLOSE, GatewayError } from './errors.ts';
import { parseFields } from './parse-fields.ts';
import { readBounded } from './read-bounded.ts';

const BODY_LIMIT_BYTES = 2 * 1024 * 1024;
/** How long a body may take: this, plus a second for each {@link MIN_BYTES_PER_SECOND} received. */
const MIN_DEADLINE_MS = 25_000;
const MIN_BYTES_PER_SECOND = 16 * 1024;

/** The bytes of a body. Disposing of it frees their share of the bodies. */
export interface RequestBody extends Disposable {
  readonly bytes: Buffer<ArrayBuffer>;
}

/**
 * Reads the complete body. The caller keeps it as long as it may have to send it again, then disposes of it.
 *
 * @throws GatewayError 413 when it is larger than {@link BODY_LIMIT_BYTES}, 408 when it arrives too slowly, 400 when it
 *   is incomplete, 503 when there is no memory for it
 */
export async function readBody(request: Request, bodies: RequestBodies): Promise<RequestBody> {
  const declaredBytes = Number(request.headers.get('content-length') ?? 0);
  if (declaredBytes > BODY_LIMIT_BYTES) throw tooLarge();
  const share = bodies.open(declaredBytes);
  const { promise: tooSlow, reject } = Promise.withResolvers<never>();
  const deadline = startDeadline(share, () =>
    reject(new GatewayError(408, 'bodyTooSlow', { headers: CLOSE })),
  );
  try {
    const reading = readBounded(request.body, BODY_LIMIT_BYTES, (bytes) => share.grow(bytes));
    const bytes = await Promise.race([reading, share.shed, tooSlow]);
    if (!bytes) throw tooLarge();
    share.arrived();
    return { bytes, [Symbol.dispose]: () => share.release() };
  } catch (cause) {
    share.release();
    throw cause instanceof GatewayError ? cause : new GatewayError(400, 'bodyIncomplete', { cause });
  } finally {
    deadline.clear();
  }
}

/** Bun itself has no deadline for request bodies. */
function startDeadline(share: BodyShare, onLate: () => void) {
  let timer: Timer | undefined;
  const check = (elapsedMs: number) => {
    const allowedMs = MIN_DEADLINE_MS + Math.floor(share.arrivedBytes / MIN_BYTES_PER_SECOND) * 1000;
    if (allowedMs <= elapsedMs) onLate();
    else timer = setTimeout(check, allowedMs - elapsedMs, allowedMs);
  };
  check(0);
  return { clear: () => clearTimeout(timer) };
}

/**
 * Returns the named fields of a JSON or URL-encoded body; null when it has no fields or another content type.
 *
 * @throws GatewayError as {@link readBody} and {@link parseFields} do
 */
export async function readFields(
  request: Request,
  bodies: RequestBodies,
  names: readonly string[],
): Promise<Readonly<Record<string, unknown>> | null> {
  using body = await readBody(request, bodies);
  const fields = parseFields(request.headers.get('content-type'), body.bytes);
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return null;
  // The other fields would stay in memory until the request has ended.
  return Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name)));
}

function tooLarge(): GatewayError {
  return new GatewayError(413, 'bodyTooLarge');
}
