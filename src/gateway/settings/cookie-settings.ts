/** The settings of the session cookies. */

import type { EnvironmentReader } from './environment-reader.ts';

export type CookieSettings = ReturnType<typeof readCookieSettings>;

export function readCookieSettings(read: EnvironmentReader, production: boolean) {
  // The flag is read first, so that an invalid value is reported in production too.
  const secure = read.flag('COOKIE_SECURE') || production;
  const prefix: string =
    read.text('COOKIE_PREFIX') && read.oneOf('COOKIE_PREFIX', ['__Host-', '__Host-Http-'], '__Host-');
  if (prefix && !secure) {
    read.problems.push('COOKIE_PREFIX needs Secure cookies: set NODE_ENV=production or COOKIE_SECURE=true');
  }
  return {
    /** Begins both names: browsers then reject such cookies from other hosts of the site. Empty by default; the demo has its own. */
    prefix,
    sameSite: read.oneOf('COOKIE_SAME_SITE', ['lax', 'strict'], 'lax'),
    secure,
    /** 32 bytes each. The first key seals the cookies and every key opens them; without keys, cookies are not sealed. */
    keys: parseCookieKeys(read.secret('COOKIE_KEYS'), read.problems),
    /** Whether unsealed cookies count too, for the time after sealing has been turned on. */
    acceptPlain: read.flag('COOKIE_KEYS_ACCEPT_PLAIN'),
  } as const;
}

const COOKIE_KEY_BYTES = 32;

/** A problem names a key only by its position in the list. */
function parseCookieKeys(list: string, problems: string[]): readonly Uint8Array[] {
  const entries = list ? list.split(',').map((entry) => entry.trim()) : [];
  return entries.map((entry, index) => {
    const key = Buffer.from(entry, 'base64url');
    if (key.length !== COOKIE_KEY_BYTES || key.toString('base64url') !== entry) {
      problems.push(`COOKIE_KEYS: key ${index + 1} must be ${COOKIE_KEY_BYTES} bytes in base64url`);
    }
    return key;
  });
}
