/** Reads a request's JSON body and checks it against a schema. */

import type { Static, TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ApiError } from './api-error.ts';

/** @throws ApiError 400 if the body is not JSON, 422 with the first mismatch if it does not match the schema */
export async function readJson<Schema extends TSchema>(
  request: Request,
  schema: Schema,
): Promise<Static<Schema>> {
  let body: unknown;
  try {
    body = await request.json();
  } catch {
    throw new ApiError(400, 'The body is not JSON');
  }
  if (Value.Check(schema, body)) return body;
  const mismatch = Value.Errors(schema, body).First();
  throw new ApiError(422, `${mismatch?.path || 'body'}: ${mismatch?.message ?? 'unexpected value'}`);
}
