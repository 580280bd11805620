/**
 * The request and response bodies of the gateway's own routes, with their types. Other fields of a request are ignored.
 * The schemas do not say so by `additionalProperties`: no interface is assignable to the type that a generated client
 * would get from that.
 */

import { type Static, type TSchema, Type } from '@sinclair/typebox';
import type { MessageKey } from '../http/messages.ts';

/**
 * Gives the client's types a body. Elysia reads none, because it would validate before session and room are checked: the
 * `resolve()` before the route does. That is for all that follows in its file, so the route stays the last one.
 */
export function typeOf<Schema extends TSchema>(_: Schema) {
  return Type.Unsafe<Static<Schema>>(Type.Unknown());
}

/** Far more than a real code or verifier has. Without a limit, anybody could send megabytes to the identity provider. */
const MAX_SIGN_IN_CHARACTERS = 4096;
const TRIMMED = { description: 'Trimmed before its UTF-16 code units are counted.' };
const FLAG = { description: 'True when it is the literal `true`; anything else counts as false.' };
const NOT_AN_OBJECT = { error: 'bodyNotAnObject' satisfies MessageKey };

/** @param error the text of the 400 */
function text(minLength: number, maxLength: number, error: MessageKey, options = {}) {
  return Type.String({ minLength, maxLength, ...options, error });
}

/** @see RFC 7636 section 4.1: a verifier has 43 to 128 characters. The identity provider validates it. */
export const SignInRequest = Type.Object(
  {
    code: text(1, MAX_SIGN_IN_CHARACTERS, 'codeInvalid'),
    code_verifier: text(43, MAX_SIGN_IN_CHARACTERS, 'codeVerifierInvalid'),
  },
  NOT_AN_OBJECT,
);
export type SignInRequest = Static<typeof SignInRequest>;

export const GenerationRequest = Type.Object(
  {
    model: text(1, 120, 'modelInvalid', TRIMMED),
    prompt: text(1, 4100, 'promptInvalid', TRIMMED),
    music_length_ms: Type.Integer({
      minimum: 3000,
      maximum: 600_000,
      description: 'Milliseconds.',
      error: 'musicLengthInvalid' satisfies MessageKey,
    }),
    force_instrumental: Type.Optional(Type.Unknown(FLAG)),
    is_public: Type.Optional(Type.Unknown(FLAG)),
  },
  NOT_AN_OBJECT,
);
export type GenerationRequest = Static<typeof GenerationRequest>;

/** The session check's own response, when there is no session or the upstream has no profile. */
export const SessionState = Type.Object({ authenticated: Type.Boolean() });
export type SessionState = Static<typeof SessionState>;
