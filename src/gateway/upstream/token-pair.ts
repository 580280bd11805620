/** Parses the access and refresh token in the upstream's responses to sign-in and refresh. */

import { type Static, Type } from '@sinclair/typebox';
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
 * Returns the token pair of a JSON body, from its top level or its `data`; undefined when there is no valid one.
 *
 * @see RFC 6749 section 5.1
 */
function parseTokenPair(body: unknown): TokenPair | undefined {
  const fields = Value.Check(TokenFields, body) ? body : dataOf(body);
  if (!fields) return undefined;
  return {
    accessToken: fields.access_token,
    refreshToken: fields.refresh_token,
    expiresInSeconds: parseExpiresIn(fields.expires_in),
  };
}

/** Returns the pair in a successful response; undefined when the response failed or has no valid pair. */
export function readTokenPair(response: UpstreamResponse): TokenPair | undefined {
  return isSuccess(response) ? parseTokenPair(jsonOf(response)) : undefined;
}

function dataOf(body: unknown): Static<typeof TokenFields> | undefined {
  return Value.Check(WrappedTokenFields, body) ? body.data : undefined;
}

function parseExpiresIn(value: unknown): number {
  const seconds = typeof value === 'number' || typeof value === 'string' ? Math.floor(Number(value)) : 0;
  return seconds > 0 ? Math.min(seconds, MAX_EXPIRES_IN_SECONDS) : DEFAULT_EXPIRES_IN_SECONDS;
}
