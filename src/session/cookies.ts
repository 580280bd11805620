/** The two session cookies: their schema, and how they are read, stored and cleared. */

import { type Static, Type } from '@sinclair/typebox';
import { TypeCompiler } from '@sinclair/typebox/compiler';
import type { Context } from 'elysia';
import { GatewayError } from '../http/errors.ts';
import { messages } from '../http/messages.ts';
import { Token, type TokenPair } from '../upstream/token-pair.ts';

const ACCESS = 'svc_music_access';
const REFRESH = 'svc_music_refresh';

export const SessionCookies = Type.Object({
  [ACCESS]: Type.Optional(Token),
  [REFRESH]: Type.Optional(Token),
});

export interface SessionTokens {
  readonly accessToken: string | undefined;
  readonly refreshToken: string | undefined;
}

const REFRESH_MAX_AGE_SECONDS = 30 * 24 * 60 * 60;
/** Browsers silently drop a cookie whose name and value are longer (RFC 6265bis section 5.6). */
const COOKIE_LIMIT_BYTES = 4096;

const validator = TypeCompiler.Compile(SessionCookies);

/**
 * Reads the tokens from a `Cookie` header; a value that no token can have counts as absent.
 *
 * Elysia's own cookie jar is not used, because it changes some tokens: it decodes twice (`a%2Bb` becomes `a+b`) and
 * turns a value that looks like JSON into an object. Bun's classes give back every value as it was stored.
 */
export function parseSessionCookies(header: string | null): SessionTokens {
  if (header === null) return { accessToken: undefined, refreshToken: undefined };
  const jar = new Bun.CookieMap(header);
  const read = (name: keyof Static<typeof SessionCookies>): string | undefined => {
    const cookie = { [name]: jar.get(name) ?? undefined };
    return validator.Check(cookie) ? cookie[name] : undefined;
  };
  return { accessToken: read(ACCESS), refreshToken: read(REFRESH) };
}

/** @throws GatewayError 502 when a token is too large for a cookie; then neither is stored */
export function storeTokenPair(set: Context['set'], pair: TokenPair, production: boolean): void {
  const cookies = [
    sessionCookie(ACCESS, pair.accessToken, pair.expiresInSeconds, production),
    sessionCookie(REFRESH, pair.refreshToken, REFRESH_MAX_AGE_SECONDS, production),
  ];
  const fits = cookies.every(
    (cookie) => cookie.slice(0, cookie.indexOf(';')).length - 1 <= COOKIE_LIMIT_BYTES,
  );
  if (!fits) throw new GatewayError(502, messages.tokensTooLarge);
  set.headers['set-cookie'] = cookies;
}

export function clearSessionCookies(set: Context['set'], production: boolean): void {
  set.headers['set-cookie'] = [ACCESS, REFRESH].map((name) => sessionCookie(name, '', 0, production));
}

function sessionCookie(name: string, value: string, maxAge: number, secure: boolean): string {
  return new Bun.Cookie(name, value, {
    httpOnly: true,
    sameSite: 'lax',
    path: '/',
    maxAge,
    secure,
  }).serialize();
}
