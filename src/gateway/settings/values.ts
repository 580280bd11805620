/** What the value of a setting must be: each rule says what is wrong with one, or nothing. */

export function baseAddressProblem(value: string): string | undefined {
  const url = URL.parse(value);
  // What is no address may hold them too.
  if (url ? url.username || url.password : value.includes('@'))
    return 'must not hold a user name or a password';
  if (!url || !/^https?:$/.test(url.protocol)) return `must be an http or https address, not "${value}"`;
  if (/[?#]/.test(value)) return 'must not hold a query or a fragment';
  return undefined;
}

/** @see RFC 6749 section 3.2: it may have a query, but no fragment. */
export function tokenUrlProblem(value: string): string | undefined {
  if (value.includes('#')) return 'must not hold a fragment';
  return baseAddressProblem(value.split('?', 1)[0] ?? '');
}

/** Says nothing of the value, which may hold a password. */
export function redisUrlProblem(value: string): string | undefined {
  const isRedis = /^(redis|valkey)s?:$/.test(URL.parse(value)?.protocol ?? '');
  return isRedis ? undefined : 'must be an address like redis://127.0.0.1:6379';
}

/** As `new URL` writes it, so that addresses built from it can be compared with it; without a trailing slash. */
export function normalized(address: string): string {
  return URL.parse(address)?.href.replace(/\/+$/, '') ?? address;
}

/** @see RFC 6749 section 3.1.2: an absolute URI without a fragment. */
export function redirectUriProblem(value: string): string | undefined {
  if (!URL.canParse(value)) return `must be an absolute URI, not "${value}"`;
  return value.includes('#') ? 'must not hold a fragment' : undefined;
}

export function parseOrigins(list: string, problems: string[]): ReadonlySet<string> {
  const origins = list
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean);
  if (list && !origins.length) problems.push('ALLOWED_ORIGINS must name at least one origin');
  for (const origin of origins) {
    const url = URL.parse(origin);
    if (!url || !/^https?:$/.test(url.protocol) || url.host.includes('*')) {
      problems.push(`ALLOWED_ORIGINS: "${origin}" is not an origin like https://studio.example`);
    } else if (url.origin !== origin) {
      problems.push(`ALLOWED_ORIGINS: "${origin}" must be written as a browser sends it: ${url.origin}`);
    }
  }
  return new Set(origins);
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export function logLevelOf(value: string, problems: string[]): LogLevel {
  const level = LOG_LEVELS.find((each) => each === value);
  if (!level) problems.push(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}, not "${value}"`);
  return level ?? 'info';
}
