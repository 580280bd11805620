/** Extracts the text for the user from an upstream's error body. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { readBounded } from '../http/read-bounded.ts';
import { jsonOf, type UpstreamResponse } from './upstream-response.ts';

const Text = Type.String({ pattern: '\\S' });
const ErrorObject = Type.Object({ error: Type.Object({ message: Text }) });
const MessageObject = Type.Object({ message: Text });

const LIMIT_BYTES = 64 * 1024;

/**
 * Returns `error.message`, else `message`, of a JSON body; undefined when none arrives within 64 KiB and `timeoutMs`.
 * Does not wait for the rest of the body.
 */
export async function readErrorMessage(
  response: UpstreamResponse,
  timeoutMs: number,
): Promise<string | undefined> {
  const body =
    response.body instanceof ReadableStream ? await readStart(response.body, timeoutMs) : jsonOf(response);
  if (Value.Check(ErrorObject, body)) return body.error.message;
  if (Value.Check(MessageObject, body)) return body.message;
  return undefined;
}

async function readStart(body: ReadableStream<Uint8Array>, timeoutMs: number): Promise<unknown> {
  try {
    // The deadline also cancels the body, which would otherwise keep its connection open.
    const deadline = { signal: AbortSignal.timeout(timeoutMs) };
    const start = body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(), deadline);
    const bytes = await readBounded(start, LIMIT_BYTES);
    return bytes && JSON.parse(bytes.toString());
  } catch {
    // A body that is late, incomplete or not JSON contains no text for the user.
    return undefined;
  }
}
