/** Reads the access and refresh token from the upstream's responses to sign-in and refresh. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { TokenProblem } from '../record/request-record.ts';
import { isSuccess, jsonOf, type UpstreamResponse } from './upstream-response.ts';

/** Visible ASCII, which fits in a header and in a cookie byte for byte. */
export const Token = Type.String({ pattern: '^[\\x21-\\x7e]+$' });

const TokenFields = Type.Object({
  access_token: Token,
  refresh_token: Token,
  expires_in: Type.Optional(Type.Unknown()),
});
const TOKEN_NAMES = ['access_token', 'refresh_token'] as const;
const JsonObject = Type.Record(Type.String(), Type.Unknown());
const Wrapper = Type.Object({ data: JsonObject, expires_in: Type.Optional(Type.Unknown()) });

export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly expiresInSeconds: number;
}
export type Tokens = Pick<TokenPair, 'accessToken' | 'refreshToken'>;

const DEFAULT_EXPIRES_IN_SECONDS = 900;
/** The longest time that a browser keeps a cookie (RFC 6265bis section 5.6.2). */
const MAX_EXPIRES_IN_SECONDS = 400 * 24 * 60 * 60;

/**
 * Reads the pair in a successful response, from the top level of its JSON or from its `data`, beside which the lifetime
 * may be. Without one it says what is wrong.
 *
 * @see RFC 6749 section 5.1
 */
export function readTokenPair(response: UpstreamResponse): {
  pair?: TokenPair;
  problem?: TokenProblem | undefined;
} {
  if (!isSuccess(response)) return {};
  const body = jsonOf(response);
  const wrapper = Value.Check(Wrapper, body) ? body : undefined;
  const data = wrapper?.data;
  const fields = [body, data].find((each) => Value.Check(TokenFields, each));
  if (!fields) {
    const problem = findProblem(body, ...TOKEN_NAMES);
    return { problem: data && problem === 'no access_token' ? findProblem(data, ...TOKEN_NAMES) : problem };
  }
  const { access_token: accessToken, refresh_token: refreshToken } = fields;
  const expiresInSeconds = parseExpiresIn(fields.expires_in ?? wrapper?.expires_in);
  return { pair: { accessToken, refreshToken, expiresInSeconds } };
}

/** Finds the first token that the JSON lacks. */
export function findProblem(
  body: unknown,
  ...names: readonly (typeof TOKEN_NAMES)[number][]
): TokenProblem | undefined {
  if (!Value.Check(JsonObject, body)) return 'no JSON object';
  const name = names.find((each) => !Value.Check(Token, body[each]));
  return name && `${Object.hasOwn(body, name) ? 'invalid' : 'no'} ${name}`;
}

function parseExpiresIn(value: unknown): number {
  const seconds = typeof value === 'number' || typeof value === 'string' ? Math.floor(Number(value)) : 0;
  return seconds > 0 ? Math.min(seconds, MAX_EXPIRES_IN_SECONDS) : DEFAULT_EXPIRES_IN_SECONDS;
}
