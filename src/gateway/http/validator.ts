/** Checks a request's fields against the schema of its route. */

import type { Static, TSchema } from '@sinclair/typebox';
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler';
import { GatewayError } from './errors.ts';
import { isMessageKey } from './messages.ts';

/** Compiled when it is first needed, so that every start stays quick. */
export function compiledAtFirstUse<Schema extends TSchema>(schema: Schema): () => TypeCheck<Schema> {
  let compiled: TypeCheck<Schema> | undefined;
  return () => {
    compiled ??= TypeCompiler.Compile(schema);
    return compiled;
  };
}

/**
 * Makes a function that returns the value if it has the schema's type.
 *
 * @throws GatewayError 400, with the message that the schema names in `error` for the first mismatch
 */
export function validator<Schema extends TSchema>(schema: Schema): (value: unknown) => Static<Schema> {
  const compiled = compiledAtFirstUse(schema);
  return (value) => {
    if (compiled().Check(value)) return value;
    const key: unknown = compiled().Errors(value).First()?.schema['error'];
    throw new GatewayError(400, isMessageKey(key) ? key : 'requestInvalid');
  };
}
