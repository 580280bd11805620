/** Finds the text for the user in an upstream's error body. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

const Text = Type.String({ pattern: '\\S' });
const ErrorObject = Type.Object({ error: Type.Object({ message: Text }) });
const MessageObject = Type.Object({ message: Text });

const LIMIT_BYTES = 64 * 1024;

/**
 * `error.message`, else `message`, of a JSON body; undefined when there is none within 64 KiB and `timeoutMs`.
 * The rest of the body is not waited for.
 */
export async function readErrorMessage(response: Response, timeoutMs: number): Promise<string | undefined> {
  const body = await readStart(response, timeoutMs);
  if (Value.Check(ErrorObject, body)) return body.error.message;
  if (Value.Check(MessageObject, body)) return body.message;
  return undefined;
}

async function readStart(response: Response, timeoutMs: number): Promise<unknown> {
  const reader = response.body?.getReader();
  if (!reader) return undefined;
  const timer = setTimeout(() => reader.cancel(), timeoutMs);
  const chunks: Uint8Array[] = [];
  try {
    for (let size = 0; size <= LIMIT_BYTES; ) {
      const { done, value } = await reader.read();
      if (done) return JSON.parse(Buffer.concat(chunks).toString());
      size += value.byteLength;
      chunks.push(value);
    }
    await reader.cancel();
  } catch {
    // A body that breaks off or is not JSON holds no text for the user.
  } finally {
    clearTimeout(timer);
  }
  return undefined;
}
