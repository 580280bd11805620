/** The upstream's sessions: opaque access tokens, and rotating refresh tokens whose reuse ends the session. */

import { randomBytes } from 'node:crypto';

/** The form in which the API sends a pair. */
export interface TokenPair {
  access_token: string;
  refresh_token: string;
  /** Seconds. */
  expires_in: number;
}

/** All the tokens issued since one sign-in. */
interface Family {
  readonly accountId: string;
  /** The keys are access tokens, the values their expiry times. */
  readonly accessTokens: Map<string, number>;
  refreshToken: string;
  readonly spentRefreshTokens: Set<string>;
}

const MAX_FAMILIES = 10_000;
const MAX_SPENT_PER_FAMILY = 1_000;

export interface TokenFamiliesOptions {
  accessTokenSeconds: number;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export class TokenFamilies {
  readonly #options: TokenFamiliesOptions;
  readonly #families = new Map<string, Family>();
  #lastId = 16;

  constructor(options: TokenFamiliesOptions) {
    this.#options = options;
  }

  /** Starts the family of a new sign-in. */
  begin(accountId: string): TokenPair {
    const id = String(++this.#lastId);
    const refreshToken = drawToken(id);
    const family = {
      accountId,
      accessTokens: new Map(),
      refreshToken,
      spentRefreshTokens: new Set<string>(),
    };
    this.#families.set(id, family);
    forgetOldest(this.#families, MAX_FAMILIES);
    return this.#grant(id, family);
  }

  /**
   * Exchanges a refresh token for a new pair. A token that is already spent revokes its whole family, because one
   * of the two clients that used it must have stolen it.
   *
   * @see RFC 9700 section 4.14.2
   */
  rotate(refreshToken: string): TokenPair | undefined {
    const id = idOf(refreshToken);
    const family = this.#families.get(id);
    if (family?.spentRefreshTokens.has(refreshToken)) this.#families.delete(id);
    if (family?.refreshToken !== refreshToken) return undefined;

    family.spentRefreshTokens.add(refreshToken);
    forgetOldest(family.spentRefreshTokens, MAX_SPENT_PER_FAMILY);
    family.refreshToken = drawToken(id);
    return this.#grant(id, family);
  }

  /** The account id of an access token, or undefined if the token is not valid. */
  accountOf(accessToken: string): string | undefined {
    const family = this.#families.get(idOf(accessToken));
    const expiresAt = family?.accessTokens.get(accessToken);
    return expiresAt !== undefined && this.#options.now() < expiresAt ? family?.accountId : undefined;
  }

  /** Revokes the family of a token, with all its access and refresh tokens. */
  revoke(token: string): void {
    const id = idOf(token);
    const family = this.#families.get(id);
    const belongs =
      family?.refreshToken === token ||
      family?.accessTokens.has(token) ||
      family?.spentRefreshTokens.has(token);
    if (belongs) this.#families.delete(id);
  }

  /** Makes every access token expire now; the refresh tokens stay valid. */
  expireAccessTokens(): void {
    for (const family of this.#families.values()) family.accessTokens.clear();
  }

  #grant(id: string, { accessTokens, refreshToken }: Family): TokenPair {
    const now = this.#options.now();
    for (const [token, expiresAt] of accessTokens) {
      if (expiresAt <= now) accessTokens.delete(token);
    }
    const { accessTokenSeconds } = this.#options;
    const accessToken = drawToken(id);
    accessTokens.set(accessToken, now + accessTokenSeconds * 1_000);
    return { access_token: accessToken, refresh_token: refreshToken, expires_in: accessTokenSeconds };
  }
}

/** Every token contains `+`, `/` and `=`, so that a gateway that alters these characters in its cookies fails. */
function drawToken(id: string): string {
  const secret = randomBytes(32).toString('base64');
  return /\+.*\/|\/.*\+/.test(secret) ? `${id}|${secret}` : drawToken(id);
}

function idOf(token: string): string {
  return token.slice(0, token.indexOf('|'));
}

/** Maps and sets iterate in insertion order, so the first key is the oldest. */
function forgetOldest(entries: Map<string, unknown> | Set<string>, limit: number): void {
  for (const key of entries.keys()) {
    if (entries.size <= limit) return;
    entries.delete(key);
  }
}
