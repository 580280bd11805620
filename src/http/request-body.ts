/** Reads a request body of bounded size, whether its length is declared or not. */

import { GatewayError } from './errors.ts';
import { messages } from './messages.ts';

export const BODY_LIMIT_BYTES = 2 * 1024 * 1024;

/**
 * The whole body, kept so that it can be sent again after a refresh.
 *
 * @throws GatewayError 413 when it is larger than {@link BODY_LIMIT_BYTES}, 400 when it breaks off
 */
export async function readBody(request: Request): Promise<Uint8Array<ArrayBuffer>> {
  if (Number(request.headers.get('content-length')) > BODY_LIMIT_BYTES) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of request.body ?? []) {
      size += chunk.byteLength;
      if (size > BODY_LIMIT_BYTES) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    throw new GatewayError(400, messages.bodyIncomplete, { cause });
  }
  if (size > BODY_LIMIT_BYTES) throw tooLarge();
  return Buffer.concat(chunks);
}

/**
 * The fields of a JSON or URL-encoded body; null when it has another content type or none. Not undefined: then
 * Elysia would try its own parsers on a body that has been read.
 *
 * @throws GatewayError 400 when the JSON is malformed, 413 when the body is too large
 */
export async function readFields(request: Request): Promise<unknown> {
  const contentType = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
  const body = await readBody(request);
  if (contentType === 'application/x-www-form-urlencoded') {
    return Object.fromEntries(new URLSearchParams(body.toString()));
  }
  if (contentType !== 'application/json') return null;
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (cause) {
    throw new GatewayError(400, messages.bodyMalformed, { cause });
  }
}

function tooLarge(): GatewayError {
  return new GatewayError(413, messages.bodyTooLarge);
}
