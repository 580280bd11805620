/**
 * The request and response bodies of the gateway's own routes. Their types are derived from these schemas. Other fields of
 * a request are ignored; a schema that allowed them by `additionalProperties` would give generated clients a type to
 * which no interface is assignable.
 */

import { type Static, type TSchema, Type } from '@sinclair/typebox';
import type { MessageKey } from '../http/messages.ts';

/**
 * Gives a route the type of its body, for typed clients. Elysia validates nothing by it: it would do so before the
 * handler has checked the session and the load.
 */
export function typeOf<Schema extends TSchema>(_: Schema) {
  return Type.Unsafe<Static<Schema>>(Type.Unknown());
}

/** Far above real codes and verifiers, so that nobody can send megabytes to the identity provider. */
const MAX_SIGN_IN_CHARACTERS = 4096;

/** @see RFC 7636 section 4.1: a verifier has 43 to 128 characters. The identity provider validates it. */
export const SignInRequest = Type.Object(
  {
    code: Type.String({
      minLength: 1,
      maxLength: MAX_SIGN_IN_CHARACTERS,
      error: 'codeInvalid' satisfies MessageKey,
    }),
    code_verifier: Type.String({
      minLength: 43,
      maxLength: MAX_SIGN_IN_CHARACTERS,
      error: 'codeVerifierInvalid' satisfies MessageKey,
    }),
  },
  { error: 'bodyNotAnObject' satisfies MessageKey },
);
export type SignInRequest = Static<typeof SignInRequest>;

const TEXT = 'Trimmed before its UTF-16 code units are counted.';
const FLAG = 'True when it is the literal `true`; anything else counts as false.';

export const GenerationRequest = Type.Object(
  {
    model: Type.String({
      minLength: 1,
      maxLength: 120,
      description: TEXT,
      error: 'modelInvalid' satisfies MessageKey,
    }),
    prompt: Type.String({
      minLength: 1,
      maxLength: 4100,
      description: TEXT,
      error: 'promptInvalid' satisfies MessageKey,
    }),
    music_length_ms: Type.Integer({
      minimum: 3000,
      maximum: 600_000,
      description: 'Milliseconds.',
      error: 'musicLengthInvalid' satisfies MessageKey,
    }),
    force_instrumental: Type.Optional(Type.Unknown({ description: FLAG })),
    is_public: Type.Optional(Type.Unknown({ description: FLAG })),
  },
  { error: 'bodyNotAnObject' satisfies MessageKey },
);
export type GenerationRequest = Static<typeof GenerationRequest>;

/** The session check's own response, when there is no session or the upstream has no profile. */
export const SessionState = Type.Object({ authenticated: Type.Boolean() });
export type SessionState = Static<typeof SessionState>;
