/** Reads a request body of bounded size, whether its length is declared or not. */

import { GatewayError } from './errors.ts';
import { messages } from './messages.ts';
import { parseFields } from './parse-fields.ts';
import { readBounded } from './read-bounded.ts';

const BODY_LIMIT_BYTES = 2 * 1024 * 1024;
const SMALL_BODY_BYTES = 64 * 1024;
const STALLED_BODY_MS = 25_000;

/**
 * The whole body, kept so that it can be sent again after a refresh.
 *
 * @throws GatewayError 413 when it is larger than {@link BODY_LIMIT_BYTES}, 408 when it stops arriving, 400 when it
 *   breaks off
 */
export async function readBody(request: Request): Promise<Buffer<ArrayBuffer>> {
  if (Number(request.headers.get('content-length')) > BODY_LIMIT_BYTES) throw tooLarge();
  const stalled = Promise.withResolvers<never>();
  // Bun lets a body take for ever.
  const timer = setTimeout(
    () => stalled.reject(new GatewayError(408, messages.bodyStalled)),
    STALLED_BODY_MS,
  );
  try {
    const body = await Promise.race([readAll(request, () => timer.refresh()), stalled.promise]);
    if (body) return body;
  } catch (cause) {
    throw cause instanceof GatewayError ? cause : new GatewayError(400, messages.bodyIncomplete, { cause });
  } finally {
    clearTimeout(timer);
  }
  throw tooLarge();
}

async function readAll(request: Request, onChunk: () => void): Promise<Buffer<ArrayBuffer> | undefined> {
  // The native way costs a tenth, but tells nothing until the end.
  const isSmall = Number(request.headers.get('content-length') ?? BODY_LIMIT_BYTES) <= SMALL_BODY_BYTES;
  return isSmall
    ? Buffer.from(await request.arrayBuffer())
    : readBounded(request.body, BODY_LIMIT_BYTES, onChunk);
}

/**
 * The parsed fields of a JSON or URL-encoded body; null when it has another content type or none.
 *
 * @throws GatewayError as {@link readBody} and {@link parseFields} do
 */
export async function readFields(request: Request): Promise<unknown> {
  return parseFields(request.headers.get('content-type'), await readBody(request));
}

function tooLarge(): GatewayError {
  return new GatewayError(413, messages.bodyTooLarge);
}
