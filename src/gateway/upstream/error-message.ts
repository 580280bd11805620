/** Extracts the text for the user from an upstream's error body. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type BodyReader, cancelQuietly, readBounded } from '../http/body-reader.ts';
import { isStreamed } from '../http/observed-body.ts';
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
  const body = isStreamed(response.body)
    ? await readStart(response.body.reader, timeoutMs)
    : jsonOf(response);
  if (Value.Check(ErrorObject, body)) return body.error.message;
  if (Value.Check(MessageObject, body)) return body.message;
  return undefined;
}

async function readStart(reader: BodyReader | null, timeoutMs: number): Promise<unknown> {
  let isLate = false;
  const deadline = setTimeout(() => {
    isLate = true;
    void cancelQuietly(reader);
  }, timeoutMs);
  try {
    const bytes = await readBounded(chunksOf(reader), LIMIT_BYTES);
    return bytes && !isLate ? JSON.parse(bytes.toString()) : undefined;
  } catch {
    // A body that is late, incomplete or not JSON contains no text for the user.
    return undefined;
  } finally {
    clearTimeout(deadline);
    void cancelQuietly(reader);
  }
}

async function* chunksOf(reader: BodyReader | null) {
  for (let read = await reader?.read(); read?.value; read = await reader?.read()) yield read.value;
}
