/** Checks a request's fields against the schema of its route. */

import type { Static, TSchema } from '@sinclair/typebox';
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler';
import { GatewayError } from './errors.ts';
import { isMessageKey, messages } from './messages.ts';

/**
 * Makes a function that returns the value if it has the schema's type.
 *
 * @throws GatewayError 400, with the message that the schema names in `error` for the first mismatch
 */
export function validator<Schema extends TSchema>(schema: Schema): (value: unknown) => Static<Schema> {
  let compiled: TypeCheck<Schema> | undefined;
  return (value) => {
    // Compiled at the first request, because it would slow down the start.
    compiled ??= TypeCompiler.Compile(schema);
    if (compiled.Check(value)) return value;
    const key: unknown = compiled.Errors(value).First()?.schema['error'];
    throw new GatewayError(400, isMessageKey(key) ? messages[key] : messages.requestInvalid);
  };
}
