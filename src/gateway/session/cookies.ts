/** Defines, reads, stores and clears the two session cookies. */

import type { Context } from 'elysia';
import { GatewayError } from '../http/errors.ts';
import { compiledAtFirstUse } from '../http/validator.ts';
import type { CookieSettings } from '../settings/cookie-settings.ts';
import { Token, type TokenPair } from '../upstream/token-pair.ts';
import { CookieSeal } from './cookie-seal.ts';

const ACCESS = 'svc_music_access';
const REFRESH = 'svc_music_refresh';

const NAMES = [ACCESS, REFRESH] as const;
type CookieName = (typeof NAMES)[number];
const tokenCheck = compiledAtFirstUse(Token);

const REFRESH_MAX_AGE_SECONDS = 30 * 24 * 60 * 60;
/** Browsers silently drop a cookie whose name and value are longer (RFC 6265bis section 5.6). */
const COOKIE_LIMIT_BYTES = 4096;

type ResponseSettings = Context['set'];

export interface FoundTokens {
  readonly accessToken: string | undefined;
  readonly refreshToken: string | undefined;
  /** Whether a session cookie was sent twice, in which case neither token is returned. */
  readonly isAmbiguous: boolean;
  /** Whether cookies were sent, and the seal opens none of them. */
  readonly isUnreadable: boolean;
}

export class SessionCookies {
  /** The cookie names that browsers see, with the prefix. */
  readonly #names: Readonly<Record<CookieName, string>>;
  readonly #attributes: Pick<Bun.CookieInit, 'secure' | 'sameSite'>;
  readonly #seal: CookieSeal | undefined;

  constructor({ prefix, secure, sameSite, keys, acceptPlain }: CookieSettings) {
    this.#names = { [ACCESS]: prefix + ACCESS, [REFRESH]: prefix + REFRESH };
    this.#attributes = { secure, sameSite };
    this.#seal = keys.length ? new CookieSeal(keys, acceptPlain) : undefined;
  }

  get areSealed(): boolean {
    return this.#seal !== undefined;
  }

  /**
   * Reads the tokens from the `Cookie` header; sealed ones are returned sealed. A value that cannot be a token counts as
   * absent. Two cookies with the same name count as no session: another host of the site can set one of them, and the
   * header does not say which.
   *
   * Elysia's own cookie jar is not used, because it changes some tokens: it decodes twice (`a%2Bb` becomes `a+b`) and
   * turns a value that looks like JSON into an object. Bun's classes return every value as it was stored.
   */
  read({ headers }: Request): FoundTokens {
    const jar = new Bun.CookieMap(headers.get('cookie') ?? '');
    const { [ACCESS]: access, [REFRESH]: refresh } = this.#names;
    const isAmbiguous = isTwice(access, refresh, jar);
    return {
      accessToken: isAmbiguous ? undefined : validToken(jar.get(access)),
      refreshToken: isAmbiguous ? undefined : validToken(jar.get(refresh)),
      isAmbiguous,
      isUnreadable: false,
    };
  }

  /** Like {@link read}, where cookies are sealed. A value that the seal does not open counts as absent. */
  async unseal(request: Request): Promise<FoundTokens> {
    const sealed = this.read(request);
    const accessToken = await this.#open(ACCESS, sealed.accessToken);
    const refreshToken = await this.#open(REFRESH, sealed.refreshToken);
    const isSent = (sealed.accessToken ?? sealed.refreshToken) !== undefined;
    const isUnreadable = isSent && (accessToken ?? refreshToken) === undefined;
    return { ...sealed, accessToken, refreshToken, isUnreadable };
  }

  /** @throws GatewayError 502 when a token is too large for a cookie; then neither is stored */
  async store(
    set: ResponseSettings,
    { accessToken, refreshToken, expiresInSeconds }: TokenPair,
  ): Promise<void> {
    const cookies = [
      await this.#sealedCookie(ACCESS, accessToken, expiresInSeconds),
      await this.#sealedCookie(REFRESH, refreshToken, REFRESH_MAX_AGE_SECONDS),
    ];
    const fits = cookies.every((cookie) => cookie.indexOf(';') - '='.length <= COOKIE_LIMIT_BYTES);
    if (!fits) throw new GatewayError(502, 'tokensTooLarge');
    set.headers['set-cookie'] = cookies;
  }

  clear(set: ResponseSettings): void {
    set.headers['set-cookie'] = NAMES.map((name) => this.#cookie(name, '', 0));
  }

  async #sealedCookie(name: CookieName, token: string, maxAge: number): Promise<string> {
    const value = await this.#seal?.seal(this.#names[name], token, maxAge);
    return this.#cookie(name, value ?? token, maxAge);
  }

  async #open(name: CookieName, value: string | undefined): Promise<string | undefined> {
    return value === undefined ? undefined : this.#seal?.open(this.#names[name], value);
  }

  #cookie(name: CookieName, value: string, maxAge: number): string {
    const attributes = { ...this.#attributes, httpOnly: true, path: '/', maxAge };
    return new Bun.Cookie(this.#names[name], value, attributes).serialize();
  }
}

/** Whether one of the names appears twice. Searching the header instead would also scan the long values. */
function isTwice(access: string, refresh: string, jar: Bun.CookieMap): boolean {
  let found = 0;
  for (const name of jar.keys()) if (name === access || name === refresh) found++;
  return found > Number(jar.has(access)) + Number(jar.has(refresh));
}

function validToken(value: string | null): string | undefined {
  return tokenCheck().Check(value) ? value : undefined;
}
