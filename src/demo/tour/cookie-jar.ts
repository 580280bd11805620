/** A browser's cookie jar, reduced to what the sandbox and the tour need. */

interface Kept {
  readonly host: string;
  readonly cookie: Bun.Cookie;
  /** Milliseconds since the epoch. Infinity for a session cookie. */
  readonly expiresAt: number;
}

export class CookieJar {
  readonly #kept = new Map<string, Kept>();

  /** Like `fetch`, but sends and stores cookies, and does not follow redirects. */
  async fetch(url: URL, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    const cookies = this.#matching(url).map(({ cookie }) => `${cookie.name}=${cookie.value}`);
    if (cookies.length) headers.set('cookie', cookies.join('; '));
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const header of response.headers.getSetCookie()) this.#keep(url.hostname, header);
    return response;
  }

  names(url: URL): string[] {
    return this.#matching(url).map(({ cookie }) => cookie.name);
  }

  value(url: URL, name: string): string | undefined {
    return this.#matching(url).find(({ cookie }) => cookie.name === name)?.cookie.value;
  }

  /** The seconds until the cookie expires, or 0 if there is no such cookie. */
  secondsLeft(url: URL, name: string): number {
    const kept = this.#matching(url).find(({ cookie }) => cookie.name === name);
    return kept ? (kept.expiresAt - Date.now()) / 1000 : 0;
  }

  /** All ports of a host share its cookies (RFC 6265 section 8.5). */
  #matching(url: URL): Kept[] {
    return [...this.#kept.values()].filter(
      ({ host, cookie, expiresAt }) =>
        host === url.hostname && isBelow(url.pathname, cookie.path) && expiresAt > Date.now(),
    );
  }

  #keep(host: string, header: string): void {
    const cookie = Bun.Cookie.parse(header);
    const { maxAge, expires } = cookie;
    const expiresAt =
      maxAge !== undefined ? Date.now() + maxAge * 1000 : (expires?.getTime() ?? Number.POSITIVE_INFINITY);
    this.#kept.set(`${host} ${cookie.path} ${cookie.name}`, { host, cookie, expiresAt });
  }
}

/** @see RFC 6265 section 5.1.4 */
function isBelow(path: string, cookiePath: string): boolean {
  return path === cookiePath || path.startsWith(cookiePath.endsWith('/') ? cookiePath : `${cookiePath}/`);
}
