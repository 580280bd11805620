/** Reads a request's JSON body and checks it against a schema. */

import type { Static, TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ApiError } from './api-error.ts';

/** Throws 400 for a body that is not JSON, 422 for JSON that does not fit, naming the first misfit. */
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
  const misfit = Value.Errors(schema, body).First();
  throw new ApiError(422, `${misfit?.path || 'body'}: ${misfit?.message ?? 'unexpected value'}`);
}
