/** Reads the access and refresh token from the upstream's responses to sign-in and refresh. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { isSuccess, jsonOf, type UpstreamResponse } from './upstream-response.ts';

/** Visible ASCII, which fits in a header and in a cookie byte for byte. */
export const Token = Type.String({ pattern: '^[\\x21-\\x7e]+$' });

const TokenFields = Type.Object({
  access_token: Token,
  refresh_token: Token,
  expires_in: Type.Optional(Type.Unknown()),
});
const WrappedTokenFields = Type.Object({ data: TokenFields });

export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly expiresInSeconds: number;
}

const DEFAULT_EXPIRES_IN_SECONDS = 900;
/** The longest time that a browser keeps a cookie (RFC 6265bis section 5.6.2). */
const MAX_EXPIRES_IN_SECONDS = 400 * 24 * 60 * 60;

/**
 * Returns the pair in a successful response, from the top level of its JSON or from its `data`; undefined when there is
 * no valid one.
 *
 * @see RFC 6749 section 5.1
 */
export function readTokenPair(response: UpstreamResponse): TokenPair | undefined {
  const body = isSuccess(response) ? jsonOf(response) : undefined;
  const wrapped = Value.Check(WrappedTokenFields, body) ? body.data : undefined;
  const fields = Value.Check(TokenFields, body) ? body : wrapped;
  return (
    fields && {
      accessToken: fields.access_token,
      refreshToken: fields.refresh_token,
      expiresInSeconds: parseExpiresIn(fields.expires_in),
    }
  );
}

function parseExpiresIn(value: unknown): number {
  const seconds = typeof value === 'number' || typeof value === 'string' ? Math.floor(Number(value)) : 0;
  return seconds > 0 ? Math.min(seconds, MAX_EXPIRES_IN_SECONDS) : DEFAULT_EXPIRES_IN_SECONDS;
}
