/** The settings of the session cookies. */

import type { EnvironmentReader } from './environment-reader.ts';

export const COOKIE_SETTING_NAMES = ['COOKIE_KEYS', 'COOKIE_KEYS_ACCEPT_PLAIN'] as const;
type CookieSettingName = (typeof COOKIE_SETTING_NAMES)[number];

export interface CookieSettings {
  readonly secure: boolean;
  /** 32 bytes each; the first seals the cookies, all open them; none: the cookies are not sealed. */
  readonly keys: readonly Uint8Array[];
  /** For the switch-over: cookies from before sealing was on still count. */
  readonly acceptPlain: boolean;
}

export function parseCookieSettings(
  read: EnvironmentReader<CookieSettingName>,
  production: boolean,
  problems: string[],
): CookieSettings {
  return {
    secure: production,
    keys: parseCookieKeys(read.text('COOKIE_KEYS', ''), problems),
    acceptPlain: read.flag('COOKIE_KEYS_ACCEPT_PLAIN'),
  };
}

const COOKIE_KEY_BYTES = 32;

/** Says nothing of the keys but their place in the list. */
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
