/** Extracts the text for the user from an upstream's error body. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { isStreamed } from '../http/body.ts';
import { type BodyReader, type Chunk, cancelQuietly, readBounded } from '../http/body-reader.ts';
import { chunksOf, jsonOf, type UpstreamResponse } from './upstream-response.ts';

const Text = Type.String({ pattern: '\\S' });
const ErrorObject = Type.Object({ error: Type.Object({ message: Text }) });
const MessageObject = Type.Object({ message: Text });

const LIMIT_BYTES = 64 * 1024;

/**
 * Returns `error.message`, else `message`, of a JSON body; undefined when none arrives within 64 KiB and `timeoutMs`.
 * Does not wait for the rest of the body.
 */
export async function readErrorMessage(
  { body }: UpstreamResponse,
  timeoutMs: number,
): Promise<string | undefined> {
  const error = jsonOf({ body: isStreamed(body) ? await readBriefly(body.rest, timeoutMs) : body });
  if (Value.Check(ErrorObject, error)) return error.error.message;
  if (Value.Check(MessageObject, error)) return error.message;
  return undefined;
}

/** Returns null when the body is too large, late or incomplete. */
export async function readBriefly(reader: BodyReader | null, timeoutMs: number): Promise<Chunk | null> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(late.resolve, timeoutMs);
  try {
    return (await Promise.race([readBounded(chunksOf(reader), LIMIT_BYTES), late.promise])) ?? null;
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
    void cancelQuietly(reader);
  }
}
