/** Finds the text for the user in an upstream's error body. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { readBounded } from '../http/read-bounded.ts';
import { jsonOf, type UpstreamResponse } from './upstream-response.ts';

const Text = Type.String({ pattern: '\\S' });
const ErrorObject = Type.Object({ error: Type.Object({ message: Text }) });
const MessageObject = Type.Object({ message: Text });

const LIMIT_BYTES = 64 * 1024;

/**
 * `error.message`, else `message`, of a JSON body; undefined when there is none within 64 KiB and `timeoutMs`.
 * The rest of the body is not waited for.
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
    // The deadline ends the body too, which would otherwise go on holding its connection.
    const deadline = { signal: AbortSignal.timeout(timeoutMs) };
    const start = body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(), deadline);
    const bytes = await readBounded(start, LIMIT_BYTES);
    return bytes && JSON.parse(bytes.toString());
  } catch {
    // A body that is late, breaks off or is not JSON holds no text for the user.
    return undefined;
  }
}
